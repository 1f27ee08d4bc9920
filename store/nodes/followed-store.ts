import type { SharedStore, Told } from '../store.ts'

/** A shared store as its driver makes it. `withListeners` adds `onOthers`. */
type Driver = Omit<SharedStore, 'onOthers'>

export type FollowedStore = SharedStore & {
  /**
   * Begins to report the changes that other nodes have made since the store was opened. From now on, `onOthers` takes no
   * listener for keys, because the listener would have missed changes. `isUrgent`: see `Follow`.
   */
  startFollowing(onGap: (reason: Error) => void, isUrgent?: () => boolean): void
}

/** Adds `onOthers` to a driver: each change of other nodes goes to the listeners of its `place`. */
export function withListeners<D extends Driver>(driver: D): D & FollowedStore {
  const listeners = new Map<string, ((change: Told) => void)[]>()
  let isFollowed = false
  return {
    ...driver,
    onOthers(place, listener) {
      const isOfKeys = place.endsWith('/')
      if (isFollowed && isOfKeys)
        throw new Error(`${place} is loaded too late: the store is followed already`)
      const known = listeners.get(place)
      if (known) known.push(listener)
      else listeners.set(place, [listener])
    },
    startFollowing(onGap, isUrgent) {
      isFollowed = true
      driver.follow(
        (changes) => {
          for (const change of changes) {
            for (const listener of listeners.get(placeOf(change)) ?? []) listener(change)
          }
        },
        onGap,
        isUrgent,
      )
    },
  }
}

function placeOf(change: Told): string {
  if ('tell' in change) return change.tell
  const key = 'put' in change ? change.put : change.del
  return key.slice(0, key.indexOf('/') + 1)
}
