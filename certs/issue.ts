import 'reflect-metadata' // before x509, which needs it
import { createPrivateKey, createPublicKey, randomBytes, webcrypto } from 'node:crypto'
import { isIP } from 'node:net'
import * as x509 from '@peculiar/x509'

/*
 * Signs certificates. x509 takes long to load: import this file only when necessary.
 */

/** When a certificate is valid. */
interface Validity {
  notBefore: Date
  notAfter: Date
}

/** The certificate of a CA with this name and key, signed by itself. */
export async function issueCaCertificate(parts: Validity & { name: string; caKey: string }): Promise<string> {
  const { name, caKey, ...validity } = parts
  const publicKey = await importPublicKey(caKey)
  const { keyCertSign, cRLSign } = x509.KeyUsageFlags
  return issue({
    subject: name,
    issuer: name,
    ...validity,
    publicKey,
    signingKey: await importSigningKey(caKey),
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(keyCertSign | cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(publicKey),
    ],
  })
}

/** The certificate of a server with these names, signed by the CA. */
export async function issueServerCertificate(
  parts: Validity & { ca: string; caKey: string; serverKey: string; names: readonly string[] },
): Promise<string> {
  const { ca, caKey, serverKey, names, ...validity } = parts
  const publicKey = await importPublicKey(serverKey)
  const altNames = names.map((value) => ({ type: isIP(value) ? ('ip' as const) : ('dns' as const), value }))
  return issue({
    subject: 'CN=localhost',
    issuer: new x509.X509Certificate(ca).subject,
    ...validity,
    publicKey,
    signingKey: await importSigningKey(caKey),
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension(altNames),
      // RFC 5280 §4.2.1: strict clients (Python from 3.13 on) refuse a chain without key identifiers.
      await x509.SubjectKeyIdentifierExtension.create(publicKey),
      await x509.AuthorityKeyIdentifierExtension.create(await importPublicKey(caKey)),
    ],
  })
}

async function issue(parts: x509.X509CertificateCreateParams): Promise<string> {
  // DER requires a positive number without a leading zero byte. The first digit 4 ensures both: the first byte is from
  // 0x40 to 0x4f.
  const serialNumber = `4${randomBytes(15).toString('hex').slice(1)}`
  const certificate = await x509.X509CertificateGenerator.create(
    { serialNumber, signingAlgorithm, ...parts },
    webcrypto,
  )
  return `${certificate.toString('pem')}\n`
}

const keyAlgorithm = { name: 'ECDSA', namedCurve: 'P-256' }
const signingAlgorithm = { name: 'ECDSA', hash: 'SHA-256' }

function importSigningKey(pem: string) {
  const der = createPrivateKey(pem).export({ type: 'pkcs8', format: 'der' })
  return webcrypto.subtle.importKey('pkcs8', der, keyAlgorithm, false, ['sign'])
}

function importPublicKey(privateKey: string) {
  const der = createPublicKey(privateKey).export({ type: 'spki', format: 'der' })
  return webcrypto.subtle.importKey('spki', der, keyAlgorithm, true, ['verify'])
}
