import type { SharedStore, Store, Told } from './store.ts'

/** A shared store whose parts of the key space, and channels, can be watched one by one. */
export type WatchedStore = SharedStore &
  Required<Pick<Store, 'watch'>> & {
    /** Begins to tell what others committed since the store was opened; call it when everything is loaded. */
    startWatching(onGap: (reason: Error) => void): void
  }

/** Hands the changes of other nodes to whoever watches their place. */
export function watched(store: SharedStore): WatchedStore {
  const listeners = new Map<string, ((change: Told) => void)[]>()
  return {
    ...store,
    watch(place, listener) {
      const known = listeners.get(place)
      if (known) known.push(listener)
      else listeners.set(place, [listener])
    },
    startWatching(onGap) {
      store.follow((changes) => {
        for (const change of changes) {
          for (const listener of listeners.get(placeOf(change)) ?? []) listener(change)
        }
      }, onGap)
    },
  }
}

/** The first part of a key with its slash, or the channel. */
function placeOf(change: Told): string {
  if ('tell' in change) return change.tell
  const key = 'put' in change ? change.put : change.del
  return key.slice(0, key.indexOf('/') + 1)
}
