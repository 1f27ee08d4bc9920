import type { Config } from '../config/config.ts'
import { expected, readCa } from '../config/expected.ts'
import type { Log } from '../telemetry/log.ts'
import { createCertificates } from './certificates.ts'
import { ensureDevelopmentCertificates } from './development.ts'

/** Opens the configured certificate. Without one, opens a development certificate, which the first start makes. */
export async function openCertificates(config: Config, certsDir: string, log: Log) {
  const { tlsCert, tlsKey, tlsCa } = config
  if (tlsCa !== undefined) await readCa('HUB_TLS_CA', tlsCa)
  const makeOwn = () => ensureDevelopmentCertificates(certsDir, [config.host])
  const { cert, key, ca } =
    tlsCert !== undefined && tlsKey !== undefined
      ? { cert: tlsCert, key: tlsKey, ca: tlsCa }
      : await expected(
          'HUB_TLS_CERT',
          tlsCert,
          `a certificate, or room for development ones in ${certsDir}`,
          makeOwn,
        )
  const certificates = await expected(
    'HUB_TLS_CERT',
    tlsCert,
    'a certificate in PEM, and in HUB_TLS_KEY its key',
    () => createCertificates({ certPath: cert, keyPath: key, log }),
  )
  return { certificates, caPath: ca }
}
