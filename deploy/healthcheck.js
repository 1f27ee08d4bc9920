// Ends with 0 if the node of this environment answers /health with 200, else with 1 and the reason.
import https from 'node:https'
import net from 'node:net'
import tls from 'node:tls'
import { loadConfig } from '../dist/config.js'

// Until the whole answer is there: it may break off.
process.exitCode = 1
const loaded = loadConfig(process.env, process.cwd())
if ('problems' in loaded) fail(loaded.problems.join('\n'))
const { host, httpsPort, proxyProtocol, proxyFrom } = loaded.config
setTimeout(fail, 5_000, 'no answer within 5 s').unref()

const hint = ' (does proxyFrom name the address from which this check connects?)'
const everywhere = { '0.0.0.0': '127.0.0.1', '::': '::1' }
const socket = net.connect(httpsPort, everywhere[host] ?? host)
socket.on('error', (error) => fail(error.message))
if (proxyProtocol) socket.write('PROXY UNKNOWN\r\n')
// Its certificate is for the name that clients use.
const createConnection = () => tls.connect({ socket, rejectUnauthorized: false })
https
  .get({ path: '/health', headers: { host: 'localhost' }, createConnection }, (answer) => {
    answer.setEncoding('utf8').on('data', (text) => process.stdout.write(text))
    answer.on('end', () => process.exit(answer.statusCode === 200 ? 0 : 1))
  })
  .on('error', (error) => fail(`${error.message}${proxyFrom.length > 0 ? hint : ''}`))

function fail(reason) {
  process.stderr.write(`${reason}\n`)
  process.exit(1)
}
