/** A document as JSON text. It takes milliseconds to make, so `make` runs again only when `dependsOn` has changed. */
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
