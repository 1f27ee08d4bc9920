import 'reflect-metadata' // before x509, which needs it
import { createPrivateKey, createPublicKey, generateKeyPairSync, webcrypto } from 'node:crypto'
import * as x509 from '@peculiar/x509'
import { issueCaCertificate } from '../certs/issue.ts'

const hourMs = 3_600_000
const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }

/** A CA that signs certificates of clients. */
export async function makeClientCa(name: string) {
  const caKey = makeKey()
  const validity = { notBefore: new Date(Date.now() - hourMs), notAfter: new Date(Date.now() + hourMs) }
  const ca = await issueCaCertificate({ name: `CN=${name}`, caKey, ...validity })

  return {
    /** PEM. */
    ca,
    /** A certificate and its key, PEM. `subject`: as in `CN=a, O=b`. It is valid for `lifeMs` from an hour ago. */
    async issue(subject: string, lifeMs = 2 * hourMs) {
      const key = makeKey()
      const notBefore = new Date(Date.now() - hourMs)
      const certificate = await x509.X509CertificateGenerator.create(
        {
          serialNumber: '41',
          subject,
          issuer: `CN=${name}`,
          notBefore,
          notAfter: new Date(notBefore.getTime() + lifeMs),
          publicKey: await importKey(createPublicKey(key).export({ type: 'spki', format: 'der' })),
          signingKey: await webcrypto.subtle.importKey(
            'pkcs8',
            createPrivateKey(caKey).export({ type: 'pkcs8', format: 'der' }),
            algorithm,
            false,
            ['sign'],
          ),
          signingAlgorithm: algorithm,
          extensions: [new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.clientAuth])],
        },
        webcrypto,
      )
      return { cert: certificate.toString('pem'), key }
    },
  }
}

function makeKey(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
}

function importKey(der: Buffer) {
  return webcrypto.subtle.importKey('spki', der, algorithm, true, ['verify'])
}
