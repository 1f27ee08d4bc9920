/**
 * Returns a function that returns a document as JSON text. To make the document takes milliseconds, so `make` runs
 * again only when the result of `dependsOn` has changed.
 */
export function keptText(dependsOn: () => string, make: () => object): () => string {
  let text = ''
  let madeFor: string | undefined
  return () => {
    const current = dependsOn()
    if (madeFor !== current) text = JSON.stringify(make())
    madeFor = current
    return text
  }
}
