import type { Store } from '../../store/store.ts'
import type { Log } from '../../telemetry/log.ts'
import { createLimiter } from './limiter.ts'
import { createMailTransport, type MailServer } from './mail-transport.ts'

/** A subscription that was disabled because its webhook answers only 410. */
interface Disabled {
  name: string
  topicId: string
  url: string
  contact: string
}

/** Maximum number of mails per address and hour: users can name anybody's address. */
const mailsPerHour = 3

/**
 * Returns a function that mails the contact of a disabled subscription. Returns undefined if there is no mail server
 * (design.md §10).
 */
export function createContactMail(parts: {
  /** For a limit that all nodes count together. Absent: there are no other nodes. */
  store?: Store
  server: MailServer | undefined
  log: Log
  publicUrl: () => string
}) {
  const { server, log, publicUrl } = parts
  if (!server) return undefined
  const send = createMailTransport(server)
  const mails = createLimiter(parts.store, 'contact-mail', { points: mailsPerHour, seconds: 3600 })

  /** Never rejects: errors go to the log. */
  return async ({ name, topicId, url, contact }: Disabled): Promise<void> => {
    const address = contact.toLowerCase()
    const wait = await mails.take(address)
    if (wait !== undefined) {
      const reason = `${mailsPerHour} mails an hour to one address, the next in ${wait} s`
      log.warn({ subscription: name, reason }, 'contact not mailed')
      return
    }
    mails.tellOthers(address)
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
          `There are at most ${mailsPerHour} of these mails an hour. All subscriptions, with their state:`,
          `GET ${publicUrl()}/subscriptions`,
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
