import { promisify } from 'node:util'
import jwt from 'jsonwebtoken'
import jwksRsa from 'jwks-rsa'
import { audience, hub, serve } from './serve.mjs'

const client = jwksRsa({ jwksUri: `${hub}/.well-known/jwks.json` })
const verify = promisify(jwt.verify)
const keyOf = (header, done) =>
  client.getSigningKey(header.kid).then(
    (key) => done(null, key.getPublicKey()),
    (error) => done(error),
  )
serve((token) => verify(token, keyOf, { issuer: hub, audience, algorithms: ['RS256'] }))
