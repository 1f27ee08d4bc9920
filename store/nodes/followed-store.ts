import type { SharedStore, Told } from '../store.ts'

/** A shared store as its driver makes it. `withListeners` adds `onOthers`. */
type Driver = Omit<SharedStore, 'onOthers'>

export type FollowedStore = SharedStore & {
  /** Begins to report the changes that other nodes make after the store was opened. Call it when all is loaded. */
  startFollowing(onGap: (reason: Error) => void): void
}

/** Adds `onOthers` to a driver: each change of other nodes goes to the listeners of its `place`. */
export function withListeners<D extends Driver>(driver: D): D & FollowedStore {
  const listeners = new Map<string, ((change: Told) => void)[]>()
  return {
    ...driver,
    onOthers(place, listener) {
      const known = listeners.get(place)
      if (known) known.push(listener)
      else listeners.set(place, [listener])
    },
    startFollowing(onGap) {
      driver.follow((changes) => {
        for (const change of changes) {
          for (const listener of listeners.get(placeOf(change)) ?? []) listener(change)
        }
      }, onGap)
    },
  }
}

function placeOf(change: Told): string {
  if ('tell' in change) return change.tell
  const key = 'put' in change ? change.put : change.del
  return key.slice(0, key.indexOf('/') + 1)
}
