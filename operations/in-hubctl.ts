/**
 * How `hubctl` takes the arguments of a command and shows its answer. Without it, a required argument is a word, another
 * one an option, a list a table of its fields, and another answer names and values.
 */
export interface InHubctl<Argument extends string = string, Field extends string = string> {
  typed?: { readonly [Name in Argument]?: TypedAs }
  columns?: readonly Column<Field>[]
  /** Stands in the place of an empty table. It must be true even if a filter has left out all elements. */
  nothing?: string
  /** A sentence about what was done, instead of the answer. `{name}` stands for a field of it. */
  done?: string
  /** A sentence below the answer. */
  note?: string
  /** What the reference page says besides the sentence of the command. Links lead from `docs/`. */
  about?: string
}

/** A word (`<file>`, `[filter]`), or an option with its text for the help: `--since <time>`. */
export type TypedAs = string | readonly [flags: string, summary: string]

/** A field, with its heading if that is another one than the field's own name. */
export type Column<Field extends string = string> = Field | readonly [heading: string, field: Field]

/** The fields of an answer or of the elements of a list, also those of its objects: `livestream.title`. */
export type Path<T> = T extends readonly (infer Element)[] ? PathsOf<Element> : PathsOf<T>
type PathsOf<T> = T extends object
  ? { [Name in keyof T & string]: Name | Inner<Name, T[Name]> }[keyof T & string]
  : never
type Inner<Name extends string, Value> = Value extends readonly unknown[]
  ? never
  : Value extends object
    ? `${Name}.${keyof Value & string}`
    : never
