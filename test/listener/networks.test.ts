import t from 'tap'
import { createNetworks } from '../../listener/networks.ts'

t.test('an address is in a network of its family', async (t) => {
  const isInside = createNetworks(['192.0.2.7', '10.0.0.0/8', '2001:db8::/47', '::1'])
  for (const [address, expected] of [
    ['192.0.2.7', true],
    ['192.0.2.8', false],
    ['::ffff:192.0.2.7', true],
    ['10.255.255.255', true],
    ['11.0.0.0', false],
    ['2001:db8:1:ffff::', true],
    ['2001:db8:2::', false],
    ['::1', true],
    ['0.0.0.1', false],
    ['unknown', false],
    ['', false],
  ] as const)
    t.equal(isInside(address), expected, address)
  t.equal(createNetworks([])('192.0.2.7'), false)
})
