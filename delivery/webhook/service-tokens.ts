/** How long the hub uses a token, milliseconds. A token is valid for an hour. */
const reuseMs = 10 * 60_000
const maxKept = 10_000

/** Makes and reuses tokens for receivers: a signature costs more than the rest of a delivery. */
export function createServiceTokens(
  issue: (audience: string, account: string) => Promise<string>,
  /** Id of the key that signs now. Receivers can refuse tokens of earlier keys. */
  currentKey: () => string,
  clock: () => number,
) {
  let issued: Promise<unknown> = Promise.resolve()
  const kept = new Map<string, { token: Promise<string>; at: number; key: string }>()

  return (audience: string, account: string): Promise<string> => {
    const id = `${account} ${audience}`
    const found = kept.get(id)
    const key = currentKey()
    // The clock may have been set, either way: a token from another time is void, or not valid yet.
    if (found && Math.abs(clock() - found.at) < reuseMs && found.key === key) return found.token
    // One signature at a time: hundreds would occupy the threads that the store needs.
    const token = issued.then(() => issue(audience, account))
    issued = token.catch(() => undefined)
    kept.delete(id)
    kept.set(id, { token, at: clock(), key })
    token.catch(() => kept.delete(id))
    for (const [oldest] of kept) {
      if (kept.size <= maxKept) break
      kept.delete(oldest)
    }
    return token
  }
}
