/**
 * Returns a function that returns a document as JSON text. Calls `make` again when the result of `dependsOn` has
 * changed.
 */
export function keptDocument(dependsOn: () => string, make: () => object): () => Buffer {
  let text = Buffer.alloc(0)
  let madeFor: string | undefined
  return () => {
    const current = dependsOn()
    if (madeFor !== current) text = Buffer.from(JSON.stringify(make()))
    madeFor = current
    return text
  }
}
