import { type Command, commands } from './commands.ts'

const byName = new Map<string, Command>(commands.map((command) => [command.name, command]))

/** The command of this name, if there is one. */
export function commandNamed(name: string): Command | undefined {
  return byName.get(name)
}

/** Whether a command removes something for good. */
export function loses({ effect }: Command): boolean {
  return effect === 'loss'
}

/** The commands of a view, in the order of the table. */
export function commandsIn(view: string): readonly Command[] {
  return commands.filter(({ console }) => console?.view === view)
}

/** The buttons at each row of a list. Those that remove something are the last. */
export function rowButtonsOf(list: string): readonly Command[] {
  return commands
    .filter((one) => one.console?.of === list && one.console.by !== undefined && !isPage(one))
    .toSorted((a, b) => Number(loses(a)) - Number(loses(b)))
}

/** The buttons below a list or an answer. */
export function buttonsBelow(list: string): readonly Command[] {
  return commands.filter(({ console }) => console?.of === list && console.by === undefined)
}

/** The command that shows one row of the list, on a page of its own. */
export function pageIn(view: string): Command | undefined {
  return commandsIn(view).find(isPage)
}

/** Whether this is a view of what is an institution's own. */
export function isOwnView(view: string): boolean {
  return permissionOf(view) !== 'operate'
}

/** The permission that a user needs for a view. */
export function permissionOf(view: string): Command['permission'] {
  return commandsIn(view)[0]?.permission ?? 'operate'
}

/**
 * The view in which each value of a field has a page: a `clientId` has one in `clients`. `isOwn`: among the views of
 * what is an institution's own.
 */
export function pagesOf(field: string, isOwn: boolean): string | undefined {
  const page = commands.find(
    (command) => isPage(command) && command.console?.by === field && (command.at !== undefined) === isOwn,
  )
  return page?.console?.view
}

/** What a view shows at once: lists, and answers to commands that need no argument. Long ones are the last. */
export function sectionsOf(view: string): readonly Command[] {
  return commandsIn(view)
    .filter(({ effect, console }) => effect === 'none' && console?.of === undefined)
    .toSorted((a, b) => Number(hasUnknownFields(a)) - Number(hasUnknownFields(b)))
}

/** The buttons in the head of a view. */
export function headOf(view: string): readonly Command[] {
  return commandsIn(view).filter(({ effect, console }) => effect !== 'none' && console?.of === undefined)
}

function isPage({ effect, console }: Command): boolean {
  return effect === 'none' && console?.by !== undefined
}

function hasUnknownFields({ result }: Command): boolean {
  return result.patternProperties !== undefined
}
