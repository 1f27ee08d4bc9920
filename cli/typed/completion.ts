import { type Command, type CommandOption, type LocalCommand, usage } from '../command.ts'

/** The words that can be typed, for completion. */
interface Words {
  /** The words that may come after others: after `credentials` come `add`, `list` and others. */
  next: Next[]
  /** Options that are followed by a value. */
  valued: string[]
}

/** The words that can come after `typed`. `isWhole`: `typed` is a whole command, so its arguments can come too. */
interface Next {
  typed: string
  words: string[]
  isWhole: boolean
}

const shells: Record<string, (words: Words) => string> = { bash: forBash, zsh: forZsh, fish: forFish }

/** The command `completion bash|zsh|fish`. Its scripts complete these commands, and `completion` itself. */
export function completionOf(
  commands: readonly (Command | LocalCommand)[],
  everywhere: readonly CommandOption[],
): LocalCommand {
  const command: LocalCommand = {
    words: 'completion',
    summary: 'a script that completes what you type, for bash, zsh or fish',
    parameters: ['<shell>'],
    async run(input) {
      const shell = input.text('shell')
      const make = Object.hasOwn(shells, shell) ? shells[shell] : undefined
      if (!make) throw usage(`there is no completion for "${shell}": bash, zsh or fish`)
      return { result: make(wordsOf([...commands, command], everywhere)) }
    },
    print: String,
  }
  return command
}

function wordsOf(commands: readonly (Command | LocalCommand)[], everywhere: readonly CommandOption[]): Words {
  const next = new Map<string, Set<string>>()
  const add = (typed: string, word: string) => next.set(typed, (next.get(typed) ?? new Set()).add(word))
  const options = [...everywhere, ...commands.flatMap(({ options = [] }) => options)]
  for (const { words, options = [] } of commands) {
    const [first = '', second] = words.split(' ')
    add('', first)
    if (second !== undefined) add(first, second)
    for (const { flags } of [...options, ...everywhere]) add(words, nameOf(flags))
  }
  for (const shell of Object.keys(shells)) add('completion', shell)
  return {
    next: [...next].map(([typed, words]) => ({
      typed,
      words: [...words],
      isWhole: commands.some((command) => command.words === typed),
    })),
    valued: [
      ...new Set(options.filter(({ flags }) => flags.includes('<')).map(({ flags }) => nameOf(flags))),
    ],
  }
}

function nameOf(flags: string): string {
  return flags.split(' ')[0] ?? ''
}

function forBash({ next, valued }: Words): string {
  return `# hubctl completion bash: source it, or write it to /etc/bash_completion.d/hubctl
_hubctl() {
  local words=() last=-1 isSplit= part current typed= word index
  # bash splits a word at ":" and "=", such as a URL: puts its parts together again.
  for part in "\${COMP_WORDS[@]:0:COMP_CWORD + 1}"; do
    if [[ -n $isSplit || $part == [:=]* ]]; then words[last]+=$part; else words[++last]=$part; fi
    [[ $part == *[:=] ]] && isSplit=1 || isSplit=
  done
  current=\${words[last]}
  [[ " ${valued.join(' ')} " == *" \${words[last - 1]} "* ]] && return
  for ((index = 1; index < last; index++)); do
    word=\${words[index]}
${typedSoFar(valued)}
  case $typed in
${next.map(({ words, ...typed }) => `    ${patternOf(typed)}) COMPREPLY=($(compgen -W '${words.join(' ')}' -- "$current")) ;;`).join('\n')}
  esac
}
complete -o default -F _hubctl hubctl`
}

function forZsh({ next, valued }: Words): string {
  return `#compdef hubctl
# hubctl completion zsh: source it, or write it to a file _hubctl in a directory of $fpath
_hubctl() {
  local typed= word index
  [[ " ${valued.join(' ')} " == *" \${words[CURRENT - 1]} "* ]] && { _files; return }
  for ((index = 2; index < CURRENT; index++)); do
    word=\${words[index]}
${typedSoFar(valued)}
  case $typed in
${next.map(({ words, ...typed }) => `    ${patternOf(typed)}) compadd -- ${words.join(' ')} ;;`).join('\n')}
    *) _files ;;
  esac
}
if [[ \${funcstack[1]} == _hubctl ]]; then _hubctl; else compdef _hubctl hubctl; fi`
}

/** The end of a shell loop, for bash and zsh. The loop collects the typed words, without options and their values. */
function typedSoFar(valued: readonly string[]): string {
  return `    if [[ $word == -* ]]; then
      [[ " ${valued.join(' ')} " == *" $word "* ]] && ((index++))
    else
      typed+="\${typed:+ }$word"
    fi
  done`
}

function forFish({ next, valued }: Words): string {
  const lines = next.map(({ typed, words, isWhole }) => {
    const exactly = `__hubctl_typed "${typed}"`
    const condition = isWhole ? `${exactly}; or __hubctl_typed "${typed} *"` : exactly
    // Completes names of files only after a whole command, where arguments may come.
    const files = isWhole ? '' : ' -f'
    return `complete -c hubctl${files} -n '${condition}' -a '${words.join(' ')}'`
  })
  return `# hubctl completion fish: source it, or write it to ~/.config/fish/completions/hubctl.fish
function __hubctl_typed
    set -l typed
    set -l isValue 0
    for word in (commandline -opc)[2..]
        if test $isValue = 1
            set isValue 0
        else if string match -q -- '-*' $word
            contains -- $word ${valued.join(' ')}; and set isValue 1
        else
            set -a typed $word
        end
    end
    test $isValue = 0; and string match -q -- $argv "$typed"
end
${lines.join('\n')}`
}

function patternOf({ typed, isWhole }: Omit<Next, 'words'>): string {
  return isWhole ? `'${typed}' | '${typed} '*` : `'${typed}'`
}
