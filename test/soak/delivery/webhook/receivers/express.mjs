import { auth } from 'express-oauth2-jwt-bearer'
import { audience, hub, serve } from './serve.mjs'

const check = auth({ issuerBaseURL: hub, audience, tokenSigningAlg: 'RS256' })
serve(
  (_token, request) =>
    new Promise((resolve, reject) => {
      // What Express gives a middleware, as far as this one asks for it.
      const { headers, method, url } = request
      const get = (name) => headers[name.toLowerCase()]
      const asked = { headers, method, url, originalUrl: url, protocol: 'https', get, query: {}, is: () => false }
      check(asked, {}, (error) => (error ? reject(error) : resolve()))
    }),
)
