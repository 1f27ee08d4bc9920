import { cut } from '../../event/cut.ts'
import { remedyOf } from '../../event/remedy.ts'
import type { Store } from '../../store/store.ts'
import { visible } from '../../telemetry/visible.ts'
import type { UnconfirmedContact } from './institution-contacts.ts'
import { createLimiter } from './limiter.ts'
import { createMailTransport, isNotTaken, type MailServer } from './mail-transport.ts'

export type InstitutionMail = ReturnType<typeof createInstitutionMail>

/** What the contact of an institution is told. Times are milliseconds since the epoch. */
export interface Notices {
  /** `since`: when the last event came. */
  silent: readonly { livestreamId: string; since: number }[]
  loops: readonly { livestreamId: string; since: number }[]
  /** `message` and `path`: of the error of one of the events. */
  refusals: readonly { errorCode: string; events: number; message: string; path: string }[]
}

/** Maximum number of confirmation mails per address and hour: operators may mistype an address, and it is a stranger's. */
const confirmationsPerHour = 3
/** So many items of each kind are in a mail. */
const mostListed = 20
/** A title of a livestream has at most this many characters in a mail. */
const maxTitle = 200

/** URLs of the pages behind the links of mails. Browsers send nothing behind `#`, so no log gets the secret. */
const confirmUrl = (publicUrl: string, token: string) => `${publicUrl}/contact/confirm#token=${token}`
const unsubscribeUrl = (publicUrl: string, token: string) => `${publicUrl}/contact/unsubscribe#token=${token}`

/** Mails the contacts of institutions. Returns undefined if there is no mail server. */
export function createInstitutionMail(parts: {
  /** For a limit that all nodes count together. Absent: there are no other nodes. */
  store?: Store
  server: MailServer | undefined
  publicUrl: () => string
  /** The title of a livestream in the feed. */
  titleOf: (livestreamId: string) => string | undefined
}) {
  const { server, publicUrl, titleOf } = parts
  if (!server) return undefined
  const send = createMailTransport(server)
  const confirmations = createLimiter(parts.store, 'institution-contact', {
    points: confirmationsPerHour,
    seconds: 3600,
  })

  return {
    /**
     * Counts a confirmation mail that is asked for, by its address or by the institution that asks. Undefined: it may be
     * sent. Else the seconds to wait.
     */
    async mayConfirm(one: string): Promise<number | undefined> {
      const name = one.toLowerCase()
      const wait = await confirmations.take(name)
      if (wait === undefined) confirmations.tellOthers(name)
      return wait
    },

    /** Mails the link that confirms an address. Rejects if the mail server does not take it. */
    confirm: ({ contact, token, expiresAt }: UnconfirmedContact): Promise<void> =>
      send({
        to: contact.email,
        subject: 'Now-playing hub: shall problems of your livestreams be mailed to you?',
        lines: [
          `This address was named as the contact of the institution ${contact.institutionId}`,
          `at the now-playing hub ${publicUrl()}, by an operator or by a user of the institution.`,
          '',
          'The contact gets a mail when a livestream is silent for longer than usual, plays in a loop with another, or when',
          'events are refused: at most one in 15 minutes and six a day.',
          '',
          `If you want these mails, confirm the address: ${confirmUrl(publicUrl(), token)}`,
          '',
          `The link works until ${expiresAt}. If you do not want them, do nothing: nothing else is mailed to you.`,
        ],
      }),

    /**
     * Mails notices about an institution. `unsubscribe`: the secret that ends these mails. Resolves with `notTaken` if the
     * mail server has certainly not taken the mail, and rejects if it may have.
     */
    async tell(
      institutionId: string,
      notices: Notices,
      { email, unsubscribe }: { email: string; unsubscribe: string },
    ): Promise<'sent' | { notTaken: unknown }> {
      const end = unsubscribeUrl(publicUrl(), unsubscribe)
      const lines = [
        ...noticed(notices),
        'There is at most one mail like this in 15 minutes, and six a day. Times are UTC.',
        `You get it because your address is the contact of ${institutionId}.`,
        `If you want no more of them: ${end}`,
      ]
      try {
        await send({ to: email, subject: subjectOf(notices), lines, unsubscribe: end })
        return 'sent'
      } catch (error) {
        if (isNotTaken(error)) return { notTaken: error }
        throw error
      }
    },
  }

  function noticed({ silent, loops, refusals }: Notices): string[] {
    return [
      ...section(
        'Silent for longer than usual at this hour:',
        silent.map(({ livestreamId, since }) => `${named(livestreamId)}, last event at ${instant(since)}`),
        [
          'Look whether the playout publishes, and whether its program is connected and logged in.',
          `State of your livestreams: ${publicUrl()}/console/own-livestreams`,
        ],
      ),
      ...section(
        'In a loop with a livestream of another house, each publishing what comes from the other:',
        loops.map(({ livestreamId, since }) => `${named(livestreamId)}, since ${instant(since)}`),
        [
          'Publish for a livestream only what your own playout plays, or what you carry on air at the moment.',
        ],
      ),
      ...section('Refused events, by reason:', refusals.map(refused), [
        `Each of them: ${publicUrl()}/console/own-refusals`,
      ]),
    ]
  }

  function named(livestreamId: string): string {
    const title = titleOf(livestreamId)
    return title === undefined ? visible(livestreamId) : `${visible(cut(title, maxTitle))} (${livestreamId})`
  }
}

function refused({ errorCode, events, message, path }: Notices['refusals'][number]): string {
  const remedy = remedyOf(errorCode)
  const why = `${amount(events, 'event')}: ${visible(path)} ${visible(message)}`
  return remedy === null ? why : `${why}. What mends it: ${remedy}`
}

/** No word of a publisher: a subject is a header. */
function subjectOf({ silent, loops, refusals }: Notices): string {
  const parts = [
    silent.length > 0 && `${amount(silent.length, 'livestream')} silent`,
    loops.length > 0 && `${amount(loops.length, 'livestream')} in a loop`,
    refusals.length > 0 && 'events refused',
  ]
  return `Now-playing hub: ${parts.filter(Boolean).join(', ')}`
}

function section(title: string, items: readonly string[], hints: readonly string[]): string[] {
  if (items.length === 0) return []
  const listed = items.slice(0, mostListed).map((item) => `- ${item}`)
  const more = items.length - listed.length
  return [title, ...listed, ...(more > 0 ? [`- and ${more} more`] : []), ...hints, '']
}

function instant(at: number): string {
  return new Date(at).toISOString().slice(0, 16).replace('T', ' ')
}

function amount(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
