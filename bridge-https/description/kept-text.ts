/** A document as JSON text. Making it takes milliseconds, so it is made again only when `dependsOn` has another value. */
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
