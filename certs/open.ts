import { expected, readCa } from '../config/expected.ts'
import type { Config } from '../config/settings.ts'
import type { Log } from '../telemetry/log.ts'
import { createCertificates } from './certificates.ts'
import { ensureDevelopmentCertificates } from './development.ts'

/** `tlsCa`: the CA that clients are told to trust, if they need one. */
interface TlsPaths {
  tlsCert: string
  tlsKey: string
  tlsCa?: string
}

/** Opens the configured certificate, or makes and opens a development certificate. */
export async function openCertificates(config: Config, certsDir: string, log: Log) {
  const { tlsCert, tlsKey, tlsCa } = config
  if (tlsCa !== undefined) await readCa('HUB_TLS_CA', tlsCa)
  const makeOwn = async () => {
    const { cert, key, ca } = await ensureDevelopmentCertificates(certsDir, [config.host])
    return { tlsCert: cert, tlsKey: key, tlsCa: tlsCa ?? ca }
  }
  const paths: TlsPaths =
    tlsCert !== undefined && tlsKey !== undefined
      ? { tlsCert, tlsKey, ...(tlsCa !== undefined && { tlsCa }) }
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
    async () => {
      const ca = paths.tlsCa === undefined ? undefined : await readCa('HUB_TLS_CA', paths.tlsCa)
      return createCertificates({ certPath: paths.tlsCert, keyPath: paths.tlsKey, ca, log })
    },
  )
  return { certificates, paths }
}
