import { signal } from '@preact/signals'
import { isRecord } from '../../client/kind.ts'
import { ask, type HubAnswer, problemOf } from './ask.ts'
import { inStorage } from './storage.ts'

/** The user who is logged in. */
export interface User {
  email: string
  institution: string
  permissions: readonly string[]
}

/** The user who is logged in. Null: there is none. Undefined: not known yet. */
export const user = signal<User | null | undefined>(undefined)

/** Why the page cannot yet continue the log-in of an earlier visit. Empty: no problem. */
export const resumeProblem = signal('')

/** Whether the form to log in is shown: the hub requires a log-in, or the visitor wants one. */
export const mustLogIn = signal(false)
/** Whether the visitor may also continue without a log-in. */
export const isLogInOptional = signal(false)

/** The access token is only in this variable. The refresh token is in a cookie that no script can read. */
let token: string | undefined
/** The user of this page, also after the end of the log-in. */
let owner: User | undefined
let renewing: Promise<HubAnswer> | undefined

/** Key in `localStorage`, present while there is a log-in cookie. Without the key, a page asks for no session. */
const mark = 'hub-logged-in'
const path = '/auth/session'
/** Pause before a page tries again to continue a log-in, seconds. */
const resumeSeconds = 2

// Somebody has logged in or out in another tab, or while the browser kept this page for its Back button.
addEventListener('storage', followOtherTabs)
addEventListener('pageshow', followOtherTabs)

/** Continues the log-in of an earlier visit, if there is one. */
export async function resume(): Promise<void> {
  for (;;) {
    const answer = isMarked() ? await renew() : undefined
    // The loop ends here, except after a failure that may pass. Such a failure has status 0, 429, or 500 and above. The
    // log-in may then still be valid, so the loop tries again.
    if (answer === undefined || (answer.status !== 0 && answer.status !== 429 && answer.status < 500)) break
    resumeProblem.value = `${problemOf(answer)} Trying again…`
    await new Promise((resolve) => setTimeout(resolve, (answer.retryAfter ?? resumeSeconds) * 1000))
  }
  resumeProblem.value = ''
  user.value ??= null
}

/** Shows the log-in form to a stranger, who may also continue without a log-in. */
export function offerLogIn(): void {
  isLogInOptional.value = true
  mustLogIn.value = true
}

/** Logs in. Resolves with the problem, if there is one. */
export function logIn(email: string, password: string): Promise<string | undefined> {
  return logInAt(path, { email, password })
}

/** Logs in by a request to `path`. Resolves with the problem, if there is one. */
export async function logInAt(path: string, body: unknown): Promise<string | undefined> {
  const answer = await ask('POST', path, { body })
  return begin(answer) ? undefined : problemOf(answer)
}

/** Ends the log-in. Resolves with a problem if the log-in goes on. */
export async function logOut(): Promise<string | undefined> {
  const answer = await ask('DELETE', path)
  if (answer.status !== 200) return problemOf(answer)
  inStorage(() => sessionStorage.clear())
  forget()
  return undefined
}

/** Sends a request as the user, or as a stranger. Renews a refused token. */
export async function askAsUser(
  method: string,
  path: string,
  sent: { body?: unknown; patienceMs?: number } = {},
): Promise<HubAnswer> {
  const answer = await ask(method, path, { ...sent, token })
  const isExpired = answer.status === 403 && token !== undefined && codeOf(answer) === 'authorization.invalid'
  const isMissing = answer.status === 401 && user.value !== null
  if (!isExpired && !isMissing) return withLogInIfRefused(answer)
  const renewed = await renew()
  // With an answer other than 200 or 403, the log-in may still be valid. The caller can try later.
  if (renewed.status !== 200 && renewed.status !== 403) return renewed
  // After the end of a log-in, a stranger may still be welcome.
  return withLogInIfRefused(await ask(method, path, { ...sent, token }))
}

/** Asks for what some nodes show to strangers. If the user lacks the permission, asks again as a stranger. */
export async function askAsReader(method: string, path: string): Promise<HubAnswer> {
  const answer = await askAsUser(method, path)
  if (codeOf(answer) !== 'authorization.permission') return answer
  const asStranger = await ask(method, path)
  return asStranger.status === 401 ? answer : asStranger
}

function withLogInIfRefused(answer: HubAnswer): HubAnswer {
  if (answer.status === 401 || codeOf(answer) === 'authorization.invalid') {
    isLogInOptional.value = false
    mustLogIn.value = true
  }
  return answer
}

/** Renews the token, once for all waiting requests. 403: the log-in has ended. */
function renew(): Promise<HubAnswer> {
  renewing ??= ask('PUT', path).then((answer) => {
    renewing = undefined
    if (!begin(answer) && answer.status === 403) forget()
    return answer
  })
  return renewing
}

/** Whether an answer is a log-in. If it is that of another user, the page is loaded anew. */
function begin({ status, body }: HubAnswer): boolean {
  if (status !== 200 || typeof body.token !== 'string' || !isRecord(body.user)) return false
  const { email, institution, permissions } = body.user
  const who = {
    email: String(email),
    institution: String(institution),
    permissions: Array.isArray(permissions) ? permissions.map(String) : [],
  }
  setMark('1')
  if (owner && (owner.email !== who.email || owner.institution !== who.institution)) {
    // The page has what the user before saw and typed.
    token = undefined
    user.value = null
    location.reload()
    return true
  }
  owner = who
  token = body.token
  user.value = who
  mustLogIn.value = false
  return true
}

function followOtherTabs(): void {
  if (user.value && !isMarked()) forget()
  if (user.value === null && mustLogIn.value && isMarked()) void renew()
}

function forget(): void {
  token = undefined
  setMark(undefined)
  user.value = null
}

function isMarked(): boolean {
  return inStorage(() => localStorage.getItem(mark) !== null) ?? false
}

/** Without the mark, the person logs in anew with each page. */
function setMark(value: string | undefined): void {
  inStorage(() => (value === undefined ? localStorage.removeItem(mark) : localStorage.setItem(mark, value)))
}

function codeOf({ body }: HubAnswer): unknown {
  const [first] = Array.isArray(body.errors) ? body.errors.filter(isRecord) : []
  return first?.errorCode
}
