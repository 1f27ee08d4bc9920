import { createRemoteJWKSet, jwtVerify } from 'jose'
import { audience, hub, serve } from './serve.mjs'

const keys = createRemoteJWKSet(new URL(`${hub}/.well-known/jwks.json`))
serve((token) => jwtVerify(token, keys, { issuer: hub, audience }))
