import t from 'tap'
import { createNetworks } from '../../listener/networks.ts'

t.test('an address is in a network of its family', async (t) => {
  const isInside = createNetworks(['192.0.2.7', '10.0.0.0/8', '2001:db8::/47', '::1', 'fe80::/64'])
  for (const [address, expected] of [
    ['192.0.2.7', true],
    ['192.0.2.8', false],
    ['::ffff:192.0.2.7', true],
    ['10.255.255.255', true],
    ['11.0.0.0', false],
    ['2001:db8:1:ffff::', true],
    ['2001:db8:2::', false],
    ['::1', true],
    ['fe80::7%eth0', true],
    ['fe80::7%br-7.2', true],
    ['fe80:0:0:1::7%br-7.2', false],
    ['0.0.0.1', false],
    ['unknown', false],
    ['', false],
  ] as const)
    t.equal(isInside(address), expected, address)
  t.equal(createNetworks([])('192.0.2.7'), false)
})
