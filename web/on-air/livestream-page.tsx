import { livestreams } from './livestreams.ts'

/** One livestream, with what was on before. */
export function LivestreamPage({ id }: { id: string }) {
  const livestream = livestreams.value.get(id)
  return <p>{livestream?.title ?? id}</p>
}
