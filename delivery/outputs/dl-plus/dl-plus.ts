import { Type } from '../../../event/type.ts'
import type { TextSpan } from '../../carriers/carrier.ts'
import { dynamicLabel } from '../../carriers/dl.ts'
import { output } from '../output.ts'
import { line } from '../setting-schemas.ts'

const settings = Type.Object({
  file: line('the absolute path of a file, with {name} where there are several livestreams'),
})

/** Content types of DL Plus (TS 102 980 annex A). */
const contentTypes = { title: 1, artist: 4 }

const opened = '##### parameters { #####'
const closed = '##### parameters } #####'

/** The file of which ODR-PadEnc makes dynamic label and DL Plus tags. */
export const dlPlus = output({
  name: 'dl-plus',
  about:
    'dynamic label and DL Plus of DAB, as a file for [ODR-PadEnc](https://github.com/Opendigitalradio/ODR-PadEnc) (`-t`)',
  there: Type.String({
    pattern: '^[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}$',
    description: 'a part of a file name: letters, digits, dots, dashes, underscores, no dot in front',
  }),
  settings,
  example: { settings: { file: '/run/dab/{name}.dls' }, there: 'station-1' },
  place: ({ file }, there) => file.replaceAll('{name}', there),
  carrier: dynamicLabel,
  problems({ file }, names) {
    const isPath = file.startsWith('/') && !/(^|\/)\.{1,2}(\/|$)|\/$/.test(file)
    const isOneEach = names.length < 2 || file.includes('{name}')
    const others = file.replaceAll('{name}', '').match(/\{[A-Za-z]+\}/g) ?? []
    return [
      ...others.map((other) => ({ field: 'file', expected: `no placeholder but {name}, not ${other}` })),
      ...(isPath ? [] : [{ field: 'file', expected: 'an absolute path of a file, without . and ..' }]),
      ...(isOneEach
        ? []
        : [{ field: 'file', expected: '{name} in it, because there are several livestreams' }]),
    ]
  },

  request(element, { file }, there) {
    const written = dynamicLabel.write(element)
    const isIdle = element.type === 'idle'
    const tags = isIdle
      ? []
      : [tag(contentTypes.artist, written.artist), tag(contentTypes.title, written.title)].flat()
    const content = [
      opened,
      'DL_PLUS=1',
      `DL_PLUS_ITEM_TOGGLE=${element.toggle}`,
      `DL_PLUS_ITEM_RUNNING=${isIdle ? 0 : 1}`,
      ...tags,
      closed,
      // As a title, these lines would open the parameters again: ODR-PadEnc looks for them everywhere in the file.
      // Of an empty text it makes no label at all, and receivers would keep the one before.
      written.text.replace(/^#####/, '####') || ' ',
      '',
    ].join('\n')
    return { file: file.replaceAll('{name}', there), content }
  },

  answers: [
    [
      'the file is replaced',
      'acknowledged. The hub writes beside it and renames, so that a reader never gets half a file',
    ],
    [
      'it cannot be written',
      'failed: tried again. The folder must exist, and the user of the hub may write there',
    ],
  ],
  surprises: [
    [
      'A folder on a network may not answer, for minutes or for ever',
      'a process of its own writes the files, of some 50 MB: nothing else waits for the folder',
    ],
    [
      'ODR-PadEnc writes a space for each character outside of the complete EBU Latin set, and for `~ ^ { } | \\`',
      'such characters are transliterated',
    ],
    [
      'It looks for `##### parameters { #####` in the whole file: a title of these words empties the label',
      'the hub takes one `#` away',
    ],
    [
      'ODR-PadEnc 3.1.0 sends no label where the text is empty (`dls_count` in `dls.cpp`): receivers go on showing the one before',
      'where a [test](#watch-and-try) ends and there is no idle text, the text is a space',
    ],
    [
      'The third number of `DL_PLUS_TAG` is no length: it is the number of characters behind the first. Positions count characters, not bytes',
      'a title of 12 characters has 11 there',
    ],
    [
      'Receivers keep artist and title of DL Plus until the item toggle changes',
      '`DL_PLUS_ITEM_TOGGLE` changes with each element; during the idle text `DL_PLUS_ITEM_RUNNING` is 0',
    ],
  ],
})

function tag(contentType: number, place: TextSpan | undefined): string[] {
  return place ? [`DL_PLUS_TAG=${contentType} ${place.start} ${place.length - 1}`] : []
}
