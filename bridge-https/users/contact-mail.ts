import type { Log } from '../../telemetry/log.ts'
import { createMailTransport, type MailServer } from './mail-transport.ts'

/** A subscription whose webhook wants nothing more. */
interface Disabled {
  name: string
  topicId: string
  url: string
  contact: string
}

/** Tells the contact of a subscription that it is disabled; undefined without a mail server (design.md §10). */
export function createContactMail(parts: {
  server: MailServer | undefined
  log: Log
  publicUrl: () => string
}) {
  const { server, log, publicUrl } = parts
  if (!server) return undefined
  const send = createMailTransport(server)

  /** Never rejects: the log has what went wrong. */
  return async ({ name, topicId, url, contact }: Disabled): Promise<void> => {
    try {
      await send({
        to: contact,
        subject: 'Your webhook gets no more events of the now-playing hub',
        lines: [
          'For an hour your webhook has answered 410 (Gone) and nothing else, so the hub sends nothing to it any more.',
          '',
          `Subscription: ${name}`,
          `Livestream: ${topicId}`,
          // The rest of the URL may hold a secret of the receiver.
          `Host of the webhook: ${new URL(url).host}`,
          '',
          'Events still wait for it, for 7 days. They are sent, in their order, as soon as a test message is acknowledged:',
          `POST ${publicUrl()}/subscriptions/${name}/test`,
          '',
          'If nobody needs it any more, delete the subscription:',
          `DELETE ${publicUrl()}/subscriptions/${name}`,
          '',
          'You get this because your address is the contact of the subscription.',
        ],
      })
      log.info({ subscription: name }, 'contact mailed')
    } catch (err) {
      log.error({ err, subscription: name }, 'contact not mailed')
    }
  }
}
