import type { Signal } from '@preact/signals'
import { count } from '../words.ts'

/** Chooses between some rows of a table and all of them. */
export function SomeOrAll(of: { isAll: Signal<boolean>; name: string; some: number; all: number }) {
  const { isAll, name, some, all } = of
  const choice = (label: string, chosen: boolean) => (
    <button
      type="button"
      aria-pressed={isAll.value === chosen}
      onClick={() => {
        isAll.value = chosen
      }}
    >
      {label}
    </button>
  )
  return (
    <fieldset class="switch" aria-label="Which are listed">
      {choice(`${name} (${count(some)})`, false)}
      {choice(`All (${count(all)})`, true)}
    </fieldset>
  )
}
