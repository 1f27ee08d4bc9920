import t from 'tap'
import { originOf } from '../../listener/origin.ts'

t.test('an address counts as what one line has, its network as what one provider hands out', async (t) => {
  const table: [text: string, address: string, network: string][] = [
    ['192.0.2.7', '192.0.2.7', '192.0.2.0/24'],
    ['::ffff:192.0.2.7', '192.0.2.7', '192.0.2.0/24'],
    ['::ffff:c000:207', '192.0.2.7', '192.0.2.0/24'],
    ['2001:db8:0:1::7', '2001:db8:0:1::/64', '2001:db8:0::/48'],
    ['2001:0DB8:0000:0001:ffff:ffff:ffff:ffff', '2001:db8:0:1::/64', '2001:db8:0::/48'],
    ['fe80::7%br-7.2', 'fe80:0:0:0::/64', 'fe80:0:0::/48'],
    ['unknown', 'unknown', 'unknown'],
  ]
  for (const [text, address, network] of table) t.strictSame(originOf(text), { address, network }, text)
})
