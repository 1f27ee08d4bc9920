import t from 'tap'
import { masterOf, opinionOf, type Voice } from '../../../store/redis/sentinels.ts'

/** Ports, which stand for the servers. */
const [first, second, third] = [7001, 7002, 7003]

const host = '127.0.0.1'

/**
 * A Sentinel that answers. `epoch`: the last failover that it knows. `master` is in its answer to MASTER. `address` is
 * in its answer to GET-MASTER-ADDR-BY-NAME, and the same if left out.
 */
function says(epoch: number, master: number, { isFailingOver = false, address = master } = {}): Voice {
  const flags = isFailingOver ? 'master,failover_in_progress' : 'master'
  const about = { ip: host, port: String(master), flags, 'config-epoch': String(epoch) }
  return { others: [], opinion: opinionOf(about, [host, String(address)]) }
}

/** A Sentinel that has answered once, and does not answer now. */
function silent(id: string, ...of: Parameters<typeof says>): Voice {
  return { ...says(...of), id, problem: 'connection refused' }
}

const isFailingOver = true

/** What Sentinels say, and which server is the master. */
const situations: Record<string, { voices: Voice[]; master: number | 'promoting' | 'disputed' | undefined }> =
  {
    'none has answered': { voices: [], master: undefined },
    'one has not answered yet': { voices: [{ others: [] }, says(1, first)], master: first },
    'all know the same': { voices: [says(1, first), says(1, first), says(1, first)], master: first },
    'the others have not heard of the latest failover yet': {
      voices: [says(1, first), says(2, second), says(1, first)],
      master: second,
    },
    'a promotion has begun': {
      voices: [says(1, first), says(1, first, { isFailingOver }), says(1, first)],
      master: 'promoting',
    },
    'a server is promoted, and its replicas are still being told': {
      voices: [says(1, first), says(2, first, { isFailingOver, address: second }), says(1, first)],
      master: second,
    },
    'one still tries to promote after another has finished a later failover': {
      voices: [says(1, first, { isFailingOver }), says(2, second)],
      master: second,
    },
    'one that is behind is still telling replicas of an earlier failover': {
      voices: [says(2, first, { isFailingOver, address: second }), says(3, third)],
      master: third,
    },
    'the latest failover is followed by the next': {
      voices: [says(1, first), says(2, second, { isFailingOver })],
      master: 'promoting',
    },
    'a failover ends between the two answers': {
      voices: [says(1, first, { address: second })],
      master: first,
    },
    'the answers are of two failovers, while another Sentinel knows the later one': {
      voices: [says(2, second, { address: first }), says(1, first)],
      master: second,
    },
    'the one that knows the latest failover is silent, and another knows it: a split': {
      voices: [{ ...says(1, first), others: ['b'] }, silent('b', 2, second)],
      master: second,
    },
    'two were asked for a failover at the same moment': {
      voices: [says(2, first), says(2, second), says(1, third)],
      master: 'disputed',
    },
    'the third has heard of one of two failovers with the same number': {
      voices: [says(2, first), says(2, second), says(2, second)],
      master: second,
    },
    'new Sentinels were each told of another server': {
      voices: [says(0, first), says(0, second)],
      master: 'disputed',
    },
    'two failovers have the same number, and one of them is not finished': {
      voices: [says(2, first), says(2, second, { isFailingOver })],
      master: 'promoting',
    },
    'a later failover ends a dispute': {
      voices: [says(2, first), says(2, second), says(3, third)],
      master: third,
    },
    'all are silent': { voices: [silent('a', 1, first), silent('b', 2, second)], master: second },
    'new Sentinels, of which none knows the old ones, count from the beginning': {
      voices: [
        { ...says(0, first), others: ['d'] },
        { ...says(0, first), others: ['c'] },
        silent('b', 7, second),
      ],
      master: first,
    },
  }

t.test('which server is the master', async (t) => {
  for (const [situation, { voices, master }] of Object.entries(situations)) {
    const expected = typeof master === 'number' ? { host, port: master } : master
    t.strictSame(masterOf(voices), expected, situation)
    t.strictSame(masterOf(voices.toReversed()), expected, `${situation}, in another order`)
  }
})

t.test('answers that name no master', async (t) => {
  const about = { ip: host, port: '7001', flags: 'master', 'config-epoch': '1' }
  for (const field of ['ip', 'config-epoch'] as const) {
    const { [field]: _, ...others } = about
    t.throws(() => opinionOf(others, [host, '7001']), { message: 'the Sentinel knows no master' }, field)
  }
  t.match(opinionOf(about, null), { master: { host, port: 7001 } }, 'MASTER is enough without a failover')
})
