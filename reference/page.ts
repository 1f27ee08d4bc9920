/** A page of `docs/reference/`. In Markdown of `about` and `text`, links lead from `docs/`: `operators.md#metrics`. */
export interface ReferencePage {
  /** The name of the file, without `.md`. */
  name: string
  title: string
  /** What the page has: its first paragraph, and its line in the index. */
  about: string
  text: string
}

/** The content of the file. Links to files lead from `docs/reference/` then; those of one page and URLs stay. */
export function markdownOf({ title, about, text }: ReferencePage): string {
  const body = `${about}\n\n${text}`.replace(/\]\((?!#|[a-z]+:)/g, '](../')
  return `<!-- Written by \`npm run docs\`: change the table in the code, not this page. -->\n\n# ${title}\n\n${body.trimEnd()}\n`
}

/** A table. Each cell is Markdown in one line. */
export function table(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  return [headings, headings.map(() => '---'), ...rows].map(line).join('\n')
}

function line(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`.replace(/ {2,}(?=\|)/g, ' ')
}

/** Texts as code: `` `a`, `b` ``. Empty if there are none. */
export function code(...texts: readonly string[]): string {
  return texts.map((text) => `\`${text}\``).join(', ')
}
