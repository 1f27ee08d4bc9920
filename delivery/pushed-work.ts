import { isRecord } from '../event/json.ts'
import { type HubEvent, kindByName } from '../event/kind.ts'
import { commitTogether } from '../store/commit-together.ts'
import type { Store } from '../store/store.ts'
import { decideWithRetries, fingerprintOf, type Repetitions } from '../validator/repetitions.ts'
import type { PluginItem } from './plugins/driver.ts'
import type { WorkQueues } from './queue/work-queues.ts'
import { type Element, elementOf } from './worth/element.ts'

/** Queues the items for plugin targets that come to `POST /pubsub`. A repeated item is queued once. */
export function createPushedWork(parts: {
  store: Store
  repetitions: Repetitions
  queues: Pick<WorkQueues, 'plan'>
  plugins: { queueOfAction(action: string): string | undefined }
}) {
  const { store, repetitions, queues, plugins } = parts

  /** Queues an item. False: there is no target for the item. */
  return async (messageId: string, item: PluginItem): Promise<boolean> => {
    const { action, event, plugin, institutionId } = item
    const queue = plugins.queueOfAction(action)
    if (queue === undefined) return false
    const payload = Buffer.from(JSON.stringify(event))
    // A repeated message for the same target has the same fingerprint.
    const fingerprint = fingerprintOf(`${action}\n${messageId}`, institutionId, payload)
    await decideWithRetries(() => {
      const { once, marks } = repetitions(fingerprint, () => messageId)
      const planned = () => ({
        changes: queues.plan({
          messageId,
          once,
          groups: [
            {
              scope: queue,
              content: { payload },
              queues: [queue],
              details: { plugin, institutionId },
              ...elementIn(event),
            },
          ],
        }),
      })
      return commitTogether(store, [planned, marks])
    })
    return true
  }
}

/** What tells when the event is over, and which lane it has. Nothing of an event that the hub cannot read. */
function elementIn(event: Record<string, unknown>): { element?: Element } {
  const kind = kindByName.get(String(event.event))
  const services = Array.isArray(event.services) ? event.services.filter(isRecord) : []
  const ids = services.flatMap(({ id }) => (typeof id === 'string' ? [id] : []))
  if (!kind || ids.length === 0) return {}
  // No message of the journal stands for it, so all have the same distance.
  return { element: elementOf(event as HubEvent, kind, Object.fromEntries(ids.map((id) => [id, 0]))) }
}
