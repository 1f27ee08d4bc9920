import type { SharedStore, Store, Told } from '../store.ts'

/** A shared store as its driver makes it: `withListeners` adds the rest. */
type Driver = Omit<SharedStore, 'onOthers' | 'onTold'>

export type FollowedStore = SharedStore & {
  /**
   * Begins to report the changes that other nodes have made since the store was opened. From now on, `onOthers` takes no
   * listener, because the listener would have missed changes. `isUrgent`: see `Follow`.
   */
  startFollowing(onGap: (reason: Error) => void, isUrgent?: () => boolean): void
}

/** Hands each change of other nodes to the listeners of its prefix or channel. */
export function withListeners<D extends Driver>(driver: D): D & FollowedStore {
  const ofPrefixes = new Map<string, Parameters<Store['onOthers']>[1][]>()
  const ofChannels = new Map<string, Parameters<Store['onTold']>[1][]>()
  let isFollowed = false
  return {
    ...driver,
    onOthers(prefix, listener) {
      if (isFollowed) throw new Error(`${prefix} is loaded too late: the store is followed already`)
      ofPrefixes.set(prefix, [...(ofPrefixes.get(prefix) ?? []), listener])
    },
    onTold(channel, listener) {
      ofChannels.set(channel, [...(ofChannels.get(channel) ?? []), listener])
    },
    startFollowing(onGap, isUrgent) {
      isFollowed = true
      driver.follow((changes) => changes.forEach(hear), onGap, isUrgent)
    },
  }

  function hear(change: Told): void {
    if ('tell' in change) {
      for (const listener of ofChannels.get(change.tell) ?? []) listener(change.value)
      return
    }
    const [key, value] = 'put' in change ? [change.put, change.value] : [change.del]
    for (const listener of ofPrefixes.get(key.slice(0, key.indexOf('/') + 1)) ?? []) listener(key, value)
  }
}
