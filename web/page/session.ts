import { signal } from '@preact/signals'
import { type Answer, ask, reasonOf } from './ask.ts'
import { isRecord } from './record.ts'

/** The user who is logged in. */
export interface User {
  email: string
  institution: string
  permissions: readonly string[]
}

/** The user who is logged in. Null: there is none. Undefined: not known yet. */
export const user = signal<User | null | undefined>(undefined)

/** Whether the form to log in is shown: the hub requires a log-in, or the visitor wants one. */
export const mustLogIn = signal(false)
/** Whether the visitor may also continue without a log-in. */
export const isLogInOptional = signal(false)

/** The access token is only in this variable. The refresh token is in a cookie that no script can read. */
let token: string | undefined
let renewing: Promise<boolean> | undefined

/**
 * Key in `localStorage`. It is set while there is a cookie. If it is not set, a page does not ask for a session. Its
 * value is no secret.
 */
const mark = 'hub-logged-in'
const path = '/auth/session'

/** Continues the log-in of an earlier visit, if there is one. */
export async function resume(): Promise<void> {
  if (localStorage.getItem(mark) !== null) await renew()
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

/** Logs in by a request to another path. Resolves with the problem, if there is one. */
export async function logInAt(path: string, body: unknown): Promise<string | undefined> {
  const answer = await ask('POST', path, { body })
  return begin(answer) ? undefined : reasonOf(answer)
}

export async function logOut(): Promise<void> {
  await ask('DELETE', path)
  sessionStorage.clear()
  forget()
}

/** Sends a request as the user, or as a stranger if nobody is logged in. Renews the token if the hub refuses it. */
export async function askAsUser(method: string, path: string, body?: unknown): Promise<Answer> {
  const answer = await ask(method, path, { body, token })
  const isExpired = answer.status === 403 && token !== undefined && codeOf(answer) === 'authorization.invalid'
  const isMissing = answer.status === 401 && user.value !== null
  if (!isExpired && !isMissing) return withLogInIfRefused(answer)
  return (await renew())
    ? withLogInIfRefused(await ask(method, path, { body, token }))
    : withLogInIfRefused(answer)
}

function withLogInIfRefused(answer: Answer): Answer {
  if (answer.status === 401 || codeOf(answer) === 'authorization.invalid') {
    isLogInOptional.value = false
    mustLogIn.value = true
  }
  return answer
}

/** Renews the token, once for all requests that wait for it. */
function renew(): Promise<boolean> {
  renewing ??= ask('PUT', path).then((answer) => {
    renewing = undefined
    if (begin(answer)) return true
    // Only 403 means that the log-in has ended. Without an answer of the hub, the log-in may still be valid.
    if (answer.status === 403) forget()
    return false
  })
  return renewing
}

function begin({ status, body }: Answer): boolean {
  if (status !== 200 || typeof body.token !== 'string' || !isRecord(body.user)) return false
  const { email, institution, permissions } = body.user
  token = body.token
  localStorage.setItem(mark, '1')
  user.value = {
    email: String(email),
    institution: String(institution),
    permissions: Array.isArray(permissions) ? permissions.map(String) : [],
  }
  mustLogIn.value = false
  return true
}

function forget(): void {
  token = undefined
  localStorage.removeItem(mark)
  user.value = null
}

function codeOf({ body }: Answer): unknown {
  const [first] = Array.isArray(body.errors) ? body.errors.filter(isRecord) : []
  return first?.errorCode
}
