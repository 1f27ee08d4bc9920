import type { SigningKeys } from '../../certs/signing-keys.ts'
import { keptByAll } from '../caching.ts'
import { answerKept, type Kept, notModified } from '../kept.ts'
import { linkPage, linkScript } from '../link-page.ts'
import type { Route } from '../routes/route.ts'
import { passwordLength } from '../users/passwords.ts'

/** Routes that describe the hub: API descriptions, keys, and the page behind password links. */
export function descriptionRoutes(parts: {
  /** The API descriptions: `openapi` of the HTTPS API, `asyncapi` of MQTT. */
  openapi: () => Kept
  asyncapi: () => Kept
  keys: Pick<SigningKeys, 'jwks' | 'maxAge'>
  publicUrl: () => string
}): Route[] {
  const { openapi, asyncapi, keys, publicUrl } = parts
  const base = { method: 'GET', tag: 'Description' } as const
  return [
    {
      ...base,
      path: '/openapi.json',
      id: 'openapi',
      summary: 'This description (OpenAPI 3.1)',
      answers: { 200: { description: 'OpenAPI', mediaType: 'application/json' }, 304: notModified },
      handle: ({ header }) => answerKept(openapi(), header),
    },
    {
      ...base,
      path: '/asyncapi.json',
      id: 'asyncapi',
      summary: 'Description of the MQTT side (AsyncAPI 3.0)',
      answers: { 200: { description: 'AsyncAPI', mediaType: 'application/json' }, 304: notModified },
      handle: ({ header }) => answerKept(asyncapi(), header),
    },
    {
      ...base,
      path: '/.well-known/jwks.json',
      id: 'jwks',
      summary: 'Public keys that verify the tokens of pushes',
      answers: { 200: { description: 'JSON Web Key Set', mediaType: 'application/json' } },
      handle: () => ({
        status: 200,
        body: keys.jwks(),
        headers: keptByAll(keys.maxAge),
      }),
    },
    {
      ...base,
      path: '/.well-known/openid-configuration',
      id: 'openidConfiguration',
      summary: 'Where OpenID Connect libraries find the keys',
      answers: { 200: { description: 'Discovery document', mediaType: 'application/json' } },
      handle: () => ({ status: 200, body: discovery(publicUrl()) }),
    },
    {
      ...base,
      path: '/auth/reset',
      id: 'resetPage',
      summary: 'Page behind a password link',
      tag: 'Log-in',
      track: 'publish',
      staysOnInBrownout: true,
      answers: { 200: { description: 'Page', mediaType: 'text/html' } },
      handle: () => linkPage(resetPage),
    },
    {
      ...base,
      path: '/auth/reset.js',
      id: 'resetScript',
      summary: 'Script of the page behind a password link',
      tag: 'Log-in',
      track: 'publish',
      staysOnInBrownout: true,
      answers: { 200: { description: 'Script', mediaType: 'text/javascript' } },
      handle: linkScript,
    },
  ]
}

/** The page where a person chooses a password. */
const resetPage = {
  title: 'Choose a password',
  script: '/auth/reset.js',
  content: `<p>
          <label for="password">New password, at least ${passwordLength.min} characters</label><br>
          <input id="password" name="password" type="password" autocomplete="new-password"
            minlength="${passwordLength.min}" maxlength="${passwordLength.max}" required autofocus>
        </p>`,
  button: 'Set password',
  done: 'Your password is set. You can log in now.',
  next: { href: '/console', text: 'To the console' },
  incomplete: 'Ask for a new one.',
}

/** The fields that a verifier of tokens needs (OpenID Connect Discovery 1.0 §3). */
function discovery(issuer: string) {
  return {
    issuer,
    jwks_uri: `${issuer}/.well-known/jwks.json`,
    response_types_supported: ['id_token'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['RS256'],
    claims_supported: ['iss', 'aud', 'sub', 'email', 'email_verified', 'iat', 'exp'],
  }
}
