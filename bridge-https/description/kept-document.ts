/**
 * Returns a function that returns a document as JSON text. To make the document takes milliseconds, so `make` runs
 * again only when the result of `dependsOn` has changed. All answers share the same bytes.
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
