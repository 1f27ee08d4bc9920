import { readFile } from 'node:fs/promises'
import {
  createSecureContext,
  rootCertificates,
  type SecureContext,
  type SecureContextOptions,
} from 'node:tls'
import { readCa } from './expected.ts'
import type { Config } from './settings.ts'

/** The settings that name a CA: of the servers to which the hub connects, and of its clients. */
const settings = {
  push: { name: 'HUB_PUSH_CA', path: ({ pushCa }) => pushCa },
  feed: { name: 'HUB_FEED_CA', path: ({ feedCa }) => feedCa },
  smtp: { name: 'smtp.ca', path: ({ smtp }) => smtp?.ca },
  redis: { name: 'redis.ca', path: ({ redis }) => redis?.ca },
  client: { name: 'HUB_CLIENT_CA', path: ({ clientCa }) => clientCa },
} satisfies Record<string, { name: string; path: (config: Config) => string | undefined }>

type Purpose = keyof typeof settings

type Tell = (about: { setting: string; path: string; reason?: string }, message: string) => void

/** Returns the CA in use, PEM. It may be another one after each call. */
export type CurrentCa = () => string

export type CaFiles = Awaited<ReturnType<typeof openCaFiles>>

/**
 * Reads the CAs of the configuration. Takes a replaced file without a restart, if it is usable. Rejects with the name
 * of the setting if a file is not usable at the start. A CA whose setting is unset is undefined.
 */
export async function openCaFiles(config: Config, log: { info: Tell; error: Tell }, intervalMs = 1000) {
  const looks: (() => Promise<void>)[] = []
  const open = async (purpose: Purpose) => {
    const { name, path: pathIn } = settings[purpose]
    const path = pathIn(config)
    if (path === undefined) return undefined
    const file = await watchCa(name, path, log)
    looks.push(file.look)
    return file
  }
  const current = async (purpose: Purpose) => (await open(purpose))?.current
  const files = {
    push: await current('push'),
    feed: await current('feed'),
    smtp: await current('smtp'),
    redis: await current('redis'),
    client: await open('client'),
  }
  let isLooking = false
  const lookAtAll = async () => {
    // One after the other: on a disk that does not answer, reads would take all threads that the store needs, too.
    if (isLooking) return
    isLooking = true
    for (const look of looks) await look()
    isLooking = false
  }
  // Compares content: modification times and inotify both miss a swapped symlink.
  const timer = setInterval(() => void lookAtAll(), intervalMs).unref()
  return { ...files, close: (): void => clearInterval(timer) }
}

async function watchCa(setting: string, path: string, log: { info: Tell; error: Tell }) {
  let current = await readCa(setting, path)
  // What the last look found, and whether the node has acted on it.
  let last = { found: current, isDone: true }
  const listeners: (() => void)[] = []

  return {
    current: (): string => current,

    /** Calls the listener after each replacement. */
    onChange: (listener: () => void): void => void listeners.push(listener),

    /** Acts if two looks in a row find the same content, because a file may be half written. Never rejects. */
    async look(): Promise<void> {
      const found = await readFile(path, 'utf8').catch((error: Error) => error.message)
      if (found !== last.found) {
        last = { found, isDone: found === current }
      } else if (!last.isDone) {
        last.isDone = true
        await take()
      }
    },
  }

  async function take(): Promise<void> {
    const before = current
    try {
      current = await readCa(setting, path)
      for (const listener of listeners) listener()
      log.info({ setting, path }, 'CA replaced')
    } catch (error) {
      current = before
      const { cause } = error instanceof Error ? error : {}
      const reason = cause instanceof Error ? cause.message : String(error)
      log.error({ setting, path, reason }, 'the replaced CA cannot be used, the old one stays')
    }
  }
}

/** Returns a function that makes something of the CA in use, and again after the CA was replaced. */
export function madeOf<Made>(ca: CurrentCa | undefined, make: (ca: string | undefined) => Made): () => Made {
  let last: { ca: string | undefined; made: Made } | undefined
  return () => {
    const now = ca?.()
    if (!last || last.ca !== now) last = { ca: now, made: make(now) }
    return last.made
  }
}

/** Adds to a text about a failed connection the setting that helps, if the other side's CA is not trusted. */
export function withCaHint(text: string, purpose: Purpose): string {
  return untrusted.test(text) ? `${text}; ${settings[purpose].name} may name a CA to trust` : text
}

/** What OpenSSL says about a certificate whose CA it does not know. */
const untrusted =
  /self.signed certificate|unable to (verify the first|get (local )?issuer) certificate|certificate signature failure|invalid CA certificate/

/**
 * A TLS context that trusts `ca` (PEM), if there is one, besides the usual CAs. The option `ca` of Node would replace these,
 * and to parse all 140 of them again takes 40 ms of one turn of the event loop. `addCACert` takes 2 ms; a Node without it parses them.
 */
export function trustBesides(ca: string | undefined, options: SecureContextOptions = {}): SecureContext {
  const made = createSecureContext(options)
  if (ca === undefined) return made
  if (typeof made.context?.addCACert !== 'function')
    return createSecureContext({ ...options, ca: [...rootCertificates, ca] })
  made.context.addCACert(ca)
  return made
}
