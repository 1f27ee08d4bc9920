import { type Family, families } from '../store/keys.ts'
import { code, type ReferencePage, table } from './page.ts'

/** What a store holds. */
export function storeKeysPage(): ReferencePage {
  const rows = [...families.values()].map(({ path, holds, owner, isOfNodes, isReadAtStart }: Family) => {
    const yesOrNo = [!isOfNodes, isReadAtStart].map((is) => (is ? 'yes' : 'no'))
    return [code(path), holds, ...yesOrNo, code(owner)]
  })
  return {
    name: 'store-keys',
    title: 'Keys of the store',
    about:
      'What a hub stores, by the beginning of the keys: for those who look into the store, or into Redis.',
    text: `Never change a store by hand: nodes have most of it in memory. [An export](operators.md#files-and-backup) has every record as a line
of JSON.

In Redis, all keys of a hub begin with \`{<project>:<stage>}:2:\`. \`HGET '{hub:prod}:2:values' format\` reads one record, behind the
eight bytes of its event time; \`ZRANGEBYLEX '{hub:prod}:2:keys' [topic/ (topic0\` lists the keys of a family.

Names stand in keys as \`encodeURIComponent\` writes them, but for topics and livestreams. \`{position}\` and \`{sequence}\` are 16 digits, and
\`⏎\` is a line break. A start reads everything of the families that say so, into memory.

${table(['key', 'what it is', 'in an export', 'read at start', 'written by'], rows)}`,
  }
}
