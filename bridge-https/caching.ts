/**
 * The header of every answer of a route that says nothing else. Without it, caches between keep answers for as long as
 * they like, 404 included (RFC 9111 §4.2.2).
 */
export const keptByNobody = { 'cache-control': 'no-store' }

/**
 * The header of what everybody may see, for so many seconds. `stale-while-revalidate=0`: otherwise caches hand out what
 * is older while they fetch it anew: Varnish for ten seconds more, Google Cloud CDN for a day.
 */
export const keptByAll = (seconds: number) => ({
  'cache-control': `public, max-age=${seconds}, stale-while-revalidate=0`,
})
