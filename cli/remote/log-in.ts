import { readFile } from 'node:fs/promises'
import { usage } from '../command.ts'
import type { CallFailure } from '../connection.ts'
import { askPerson, isPersonThere, readInput } from '../typed/person.ts'
import { failureOf, perform, resultOf } from './hub.ts'
import { forgetLogIn, keepLogIn, readLogIn } from './kept-log-in.ts'
import { beginSession, endSession } from './session.ts'

/** The printed parts of a log-in. Never a token. */
export interface LoggedIn {
  url: string
  email: string
  node: unknown
  stage: unknown
}

/**
 * Logs in, and keeps the tokens if the user is an operator. Without a terminal, reads the missing e-mail address and
 * the password from lines of the standard input.
 */
export async function logIn(
  url: string,
  given: { email: string | undefined; ca: string | undefined },
): Promise<{ result: LoggedIn } | { error: CallFailure }> {
  const { ca } = given
  const { email, password } = await readPassword(given.email)
  const begun = await beginSession({ url, ca }, { email, password }, (await readLogIn(url))?.refreshToken)
  if ('error' in begun) return begun
  if ('refused' in begun) {
    if (begun.refused.status !== 401) return { error: failureOf(begun.refused, url) }
    return { error: { code: 'login.wrong', message: 'the e-mail address or the password is wrong' } }
  }
  const { session } = begun
  const asked = await perform({ url, ca }, 'status', { body: {}, token: session.token })
  const status = 'error' in asked ? asked : resultOf(asked, url)
  if ('error' in status) return status
  await keepLogIn({ url, email, ...session, ...(ca !== undefined && { ca }) })
  const { node, stage } = Object(status.result)
  return { result: { url, email, node, stage } }
}

/** Ends the log-in to a hub. If the hub cannot be asked, its tokens are forgotten all the same. */
export async function logOut(
  url: string,
  ca: string | undefined,
): Promise<{ result: { url: string; loggedOut: boolean } } | { error: CallFailure }> {
  const kept = await readLogIn(url)
  const loggedOut = await forgetLogIn(url)
  const ended = kept && (await endSession({ url, ca: ca ?? kept.ca }, kept.refreshToken))
  if (!ended || ('status' in ended && ended.status === 200)) return { result: { url, loggedOut } }
  const { code, message } = 'error' in ended ? ended.error : failureOf(ended, url)
  return { error: { code, message: `the log-in is forgotten here, but goes on at the hub: ${message}` } }
}

/** The address of a hub in the stored form: only its origin. */
export function checkUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isOrigin = url && `${url.pathname}${url.search}${url.hash}${url.username}${url.password}` === '/'
  if (url?.protocol === 'https:' && isOrigin) return url.origin
  throw usage(`the URL of a hub must be one such as https://hub.example:8443, not "${withoutPassword(text)}"`)
}

/** The certificate of a CA, PEM. */
export async function readCa(path: string): Promise<string> {
  const pem = await readFile(path, 'utf8').catch((error: Error) => {
    throw usage(`--ca cannot be read: ${error.message}`)
  })
  if (pem.includes('-----BEGIN CERTIFICATE-----')) return pem
  throw usage(`--ca must be the file of a certificate in PEM: ${path} is none`)
}

async function readPassword(given: string | undefined): Promise<{ email: string; password: string }> {
  if (isPersonThere()) {
    const secret = { text: 'Password: ', isSecret: true }
    const answers = await askPerson(given === undefined ? [{ text: 'E-mail address: ' }, secret] : [secret])
    const [email = '', password = ''] = given === undefined ? answers : [given, ...answers]
    return { email, password }
  }
  if (process.stdin.isTTY) {
    throw usage(
      'the standard error must be a terminal as well: the password would be shown, and the questions not',
    )
  }
  const lines = await readInput(2)
  const [email = '', password = ''] = given === undefined ? lines : [given, ...lines]
  if (email === '' || password === '') {
    throw usage('e-mail address and password must be typed, or stand in lines of the standard input')
  }
  return { email, password }
}

/** Hides all before the last `@`, where a mistyped URL may have a password. */
function withoutPassword(text: string): string {
  return text.replace(/^.*@/s, '…@')
}
