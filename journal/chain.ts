/** Values in the order of their positions, walked from the newest on. What is added is nearly always the newest. */
export interface Chain<Value extends { position: number }> {
  add(value: Value): Link<Value>
  remove(link: Link<Value>): void
  isEmpty(): boolean
  fromNewest(): Iterable<Value>
}

export interface Link<Value> {
  readonly value: Value
  before: Link<Value> | undefined
  behind: Link<Value> | undefined
}

export function createChain<Value extends { position: number }>(): Chain<Value> {
  let oldest: Link<Value> | undefined
  let newest: Link<Value> | undefined
  /** Where the last one was added. The next one mostly comes close behind it, also where many are loaded in order. */
  let last: Link<Value> | undefined

  return {
    add(value) {
      let before = last
      while (before && before.value.position > value.position) before = before.before
      let behind = before ? before.behind : oldest
      while (behind && behind.value.position < value.position) {
        before = behind
        behind = behind.behind
      }
      const link: Link<Value> = { value, before, behind }
      if (before) before.behind = link
      else oldest = link
      if (behind) behind.before = link
      else newest = link
      last = link
      return link
    },

    remove(link) {
      const { before, behind } = link
      if (before) before.behind = behind
      else oldest = behind
      if (behind) behind.before = before
      else newest = before
      if (last === link) last = before
    },

    isEmpty: () => newest === undefined,

    *fromNewest() {
      for (let link = newest; link; link = link.before) yield link.value
    },
  }
}
