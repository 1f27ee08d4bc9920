import { type Kept, keep } from '../kept.ts'

/** Returns a function that returns a document. Calls `make` again when the result of `dependsOn` has changed. */
export function keptDocument(dependsOn: () => string, make: () => object): () => Kept {
  let kept: { for: string; document: Kept } | undefined
  return () => {
    const current = dependsOn()
    if (kept?.for !== current) kept = { for: current, document: keep(make()) }
    return kept.document
  }
}
