import { ClientError } from './errors.ts'
import { fetchHttp } from './http.ts'

/** Browsers trust the CAs of the system, and no others that a page names. */
export const noCa = {
  readCa(): never {
    throw new ClientError('browser.unsupported', 'a browser trusts no CA that a page names: leave out ca')
  },
  httpTrusting: () => fetchHttp,
}
