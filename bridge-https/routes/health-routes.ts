import type { Metrics } from '../../telemetry/metrics.ts'
import type { Answer } from '../answer.ts'
import { Health, Liveness, NotReady, ServiceInfo } from '../description/schemas.ts'
import { isSameSecret } from '../users/passwords.ts'
import { wantsPage } from './page-routes.ts'
import type { Route } from './route.ts'

/** Says whether the store and the feed are well. */
type HealthCheck = () => Promise<{ store: boolean | 'replaced'; feed: boolean }>

/** Why clients should go to another node. Undefined: they may come. */
type ReadinessCheck = () => Promise<'cut off' | 'store' | undefined>

/** Health and metrics, for load balancers and Prometheus. */
export function healthRoutes(parts: {
  version: string
  stage: string
  health: HealthCheck
  readiness: ReadinessCheck
  metrics: Metrics
  /** The bearer token for `/metrics` (`HUB_METRICS_TOKEN`). */
  metricsToken: string | undefined
  /** The page that browsers get in place of the JSON of `/`. */
  frontPage: () => Promise<Answer>
}): Route[] {
  const { version, stage, health, readiness, metrics, metricsToken, frontPage } = parts
  const base = { method: 'GET', tag: 'Operation' } as const
  return [
    {
      ...base,
      path: '/',
      id: 'info',
      summary: 'Whether the process answers',
      description: 'Browsers, which ask for text/html, get the on-air page.',
      answers: { 200: { description: 'It does', schema: ServiceInfo } },
      async handle({ header }) {
        if (wantsPage(header)) return frontPage()
        const body = { service: 'now-playing-hub', version, stage, status: 'ok' }
        return { status: 200, body, headers: { vary: 'accept' } }
      },
    },
    {
      ...base,
      path: '/health',
      id: 'health',
      summary: 'Whether the node can do its work',
      answers: {
        200: { description: 'It can', schema: Health },
        503: {
          description:
            'The store is missing or was replaced by an empty one, or the livestream feed is missing',
          schema: Health,
        },
      },
      async handle() {
        const { store, feed } = await health()
        const isWell = store === true && feed
        return { status: isWell ? 200 : 503, body: { status: isWell ? 'ok' : 'unavailable', store, feed } }
      },
    },
    {
      ...base,
      path: '/livez',
      id: 'livez',
      summary: 'That the process answers',
      answers: { 200: { description: 'It does', schema: Liveness } },
      handle: () => ({ status: 200, body: { status: 'ok' } }),
    },
    {
      ...base,
      path: '/readyz',
      id: 'readyz',
      summary: 'Whether a load balancer should send clients to this node',
      description:
        'It stays 200 while no node reaches Redis: then no other node is better. `/health` says whether events are accepted.',
      answers: {
        200: { description: 'It should', schema: Liveness },
        503: {
          description:
            'The store of a single node fails (`store`), or this node does not reach Redis while another one does (`cut off`)',
          schema: NotReady,
        },
      },
      async handle() {
        const reason = await readiness()
        if (reason === undefined) return { status: 200, body: { status: 'ok' } }
        return { status: 503, body: { status: 'unavailable', reason } }
      },
    },
    {
      ...base,
      path: '/metrics',
      id: 'metrics',
      summary: 'Metrics of the node, in the text format of Prometheus',
      ...((metricsToken !== undefined || stage === 'prod') && {
        description: 'Needs the token of `HUB_METRICS_TOKEN`.',
        admits: async (bearer: string) => metricsToken !== undefined && isSameSecret(bearer, metricsToken),
      }),
      answers: { 200: { description: 'Metrics', mediaType: 'text/plain' } },
      async handle() {
        const headers = { 'content-type': metrics.contentType }
        return { status: 200, body: await metrics.exposition(), headers }
      },
    },
  ]
}
