/** The hub uses a token for this long before it makes a new one, milliseconds. A token is valid for an hour. */
const reuseMs = 10 * 60_000
const maxKept = 10_000

/** Makes the tokens by which receivers recognise the hub, and reuses them: a signature costs more than a delivery. */
export function createServiceTokens(
  issue: (audience: string, account: string) => Promise<string>,
  /** Id of the key that signs now. Tokens of earlier keys are not reused, because receivers may refuse them. */
  currentKey: () => string,
  clock: () => number,
) {
  let issued: Promise<unknown> = Promise.resolve()
  const kept = new Map<string, { token: Promise<string>; until: number; key: string }>()

  return (audience: string, account: string): Promise<string> => {
    const id = `${account} ${audience}`
    const found = kept.get(id)
    const key = currentKey()
    if (found && found.until > clock() && found.key === key) return found.token
    // Sign one token at a time: hundreds at once would occupy the threads that the store needs for its writes.
    const token = issued.then(() => issue(audience, account))
    issued = token.catch(() => undefined)
    kept.delete(id)
    kept.set(id, { token, until: clock() + reuseMs, key })
    token.catch(() => kept.delete(id))
    for (const [oldest] of kept) {
      if (kept.size <= maxKept) break
      kept.delete(oldest)
    }
    return token
  }
}
