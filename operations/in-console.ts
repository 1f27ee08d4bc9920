/**
 * Where and how the console shows a command, besides the page that every command has at `/console/commands/<name>`.
 *
 * Sentences name fields in braces: `{email}`, or `{sessions|session}`, which counts. A sentence is left out where one of
 * its fields is empty, false or 0. `{connected?}` is such a condition and stands for no text.
 */
export interface InConsole {
  /** The name of the view: `clients` is `/console/clients`. */
  view: string
  /** The heading of what is shown, or the label of the button. */
  title: string

  /** Without it, there is a column or a line for each field. */
  columns?: readonly ShownColumn[]
  /** Arguments with which the view asks. */
  ask?: Readonly<Record<string, unknown>>
  /** Seconds between two questions, if not 5. */
  everySeconds?: number
  /** The text in place of an empty list. */
  empty?: string
  /** The list shows only these rows until somebody wants all. */
  first?: { name: string; where: Where }
  /** The column `related` counts the rows of another list that have the same value of the field `by`. */
  related?: { list: string; by: string; noun: string }
  isNewestLast?: boolean
  /** A list whose rows are panels: the headings by the value of the first column. */
  panels?: Readonly<Record<string, string>>

  /** The field of a row that is the heading of its page, instead of the one that names it. */
  heading?: string
  /** Fields that the page of a row offers to copy, with their labels. */
  copy?: Readonly<Record<string, string>>

  /** The list or answer that has the button. Without it, the head of the view has it. */
  of?: string
  /** The argument that a row has: each row has a button, or, for a command that only reads, a page. */
  by?: string
  /** Further arguments that a row has, in fields of another name. */
  given?: Readonly<Record<string, string>>
  /** The rows that have the button. */
  where?: Where
  fields?: Readonly<Record<string, InForm>>
  /** Sentences about the row above its form. With a sentence there is a dialog also where nothing is to be typed. */
  notice?: readonly string[]
  /** Sentences that say what is lost. */
  loss?: readonly string[]
  /** An answer that is shown until somebody presses Done. `secrets`: fields to copy, with their labels. */
  answer?: {
    title: string
    text?: readonly string[]
    secrets?: Readonly<Record<string, string>>
    columns?: readonly ShownColumn[]
  }
  /** How long the answer may take, if not as long as usual. */
  patienceSeconds?: number
}

/** A field such as `store.ok`, or a title with fields, and with sentences that stand below them. */
export type ShownColumn = string | readonly [title: string, ...parts: string[]]

/** Fields with the values that they may have. Null: the field is missing. */
type Where = Readonly<Record<string, readonly (string | boolean | null)[]>>

/** The field of an argument in a form. */
interface InForm {
  label?: string
  /** Without it, the description of the argument. */
  hint?: string
  /** Values with their words. The first is chosen, unless another is `usual`. */
  choices?: Readonly<Record<string, string>>
  /** What the field begins with: a text, `yes` for a switch that is on, the ticked values one a line. */
  usual?: string
  /** The field is there when other fields have these values. */
  where?: Where
  /** What is lost when this switch is on. */
  loss?: string
}
