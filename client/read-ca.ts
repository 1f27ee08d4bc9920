import { readFileSync } from 'node:fs'
import { ClientError } from './errors.ts'

/** PEM text of a CA that is given as such, or as the path of a file. Throws `ClientError`. */
export function readCa(ca: string): string {
  if (ca.includes('-----BEGIN')) return ca
  try {
    return readFileSync(ca, 'utf8')
  } catch (error) {
    throw new ClientError('option.invalid', `ca must be PEM text or the path of a PEM file: ${ca}`, {
      cause: error,
    })
  }
}
