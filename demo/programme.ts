import { readFileSync } from 'node:fs'
import { sampleFeedPath } from '../config/sample-feed.ts'
import { type Livestream, listLivestreams } from '../validator/feed/feed.ts'

/** One element of a running order. */
export interface Element {
  type: 'music' | 'news' | 'weather' | 'live' | 'jingle'
  title: string
  artist?: string
  /** Seconds. */
  length: number
  /** An https URL. */
  cover?: string
}

/** A programme on air, and the livestreams that carry it. */
export interface Station {
  livestreams: readonly [Livestream, ...Livestream[]]
  playlist: readonly [Element, ...Element[]]
}

/** `livestreams` has titles from the sample feed. All names are invented. */
const lineUp: readonly { livestreams: string[]; playlist: [Element, ...Element[]] }[] = [
  {
    livestreams: ['Küstenwelle 1'],
    playlist: [
      music('Mira Hollund', 'Ebbe und Flut', 214),
      music('The Lantern Keepers', 'Salt on the Window', 187),
      { type: 'news', title: 'Nachrichten', length: 180 },
      music('Jonte Brink', 'Kein Wind von Westen', 201),
      { type: 'weather', title: 'Das Küstenwetter', length: 60 },
    ],
  },
  {
    livestreams: ['Bergland 3 Gipfelklang'],
    playlist: [
      music('Alina Föhr & Band', 'Höhenmeter', 198),
      music('Copper Valley', 'Thin Air', 243),
      music('Großer Bär', 'Übermorgenland', 226),
      music('Marlow Finch', 'Postcards from the Summit', 174),
    ],
  },
  {
    livestreams: ['Leuchtfeuer Klassik'],
    playlist: [
      music(
        'Kammerorchester der Hafenstadt, Leitung: Theodora Grünewald-Lindqvist',
        'Serenade für Streicher E-Dur, 2. Satz: Tempo di Valse',
        402,
      ),
      music('Ensemble Möwenflug', 'Fantasie über ein Volkslied', 318),
      { type: 'live', title: 'Übertragung aus der Aula: Das Abendkonzert', length: 540 },
    ],
  },
  {
    livestreams: ['Stadtfunk Welt'],
    playlist: [
      music('夜明けの音楽隊', '港の灯り', 233),
      music('Orkestar Zlatna Ptica', 'Đurđevdan u gradu', 205),
      music('Nine Miles Home', 'Borrowed Light', 190),
      music('Yağmur Kaya', 'İstanbul’da Sabah', 221),
    ],
  },
  {
    livestreams: ['Auental Regional Ost', 'Auental Regional West', 'Auental Regional Mitte'],
    playlist: [
      music('Die Nachtigallen', 'Komm, wir tanzen', 172),
      music('Hanne Sturm', 'Café am Markt', 195),
      music('Blue Hour Radio', 'Second Chorus', 209),
    ],
  },
  {
    livestreams: ['Zack! Beats'],
    playlist: [
      music('KLAR:TEXT feat. Lio', '4 Uhr 44', 158),
      music('Neon Otter', 'Overclocked', 181),
      { type: 'jingle', title: 'Zack! – lauter wird’s nicht', length: 8 },
    ],
  },
]

/** A station for each livestream of the sample feed, with two elements. Music has a cover, whose URL `coverOf` tells. */
export function readAllStations(coverOf: (title: string) => string): Station[] {
  const elements = readStations(coverOf).flatMap(({ playlist }) => playlist)
  // A browser might lack fonts for scripts other than Latin. A short element would be over at once.
  const shown = elements.filter(({ title, length }) => isLatin(title) && length > 60)
  return sampleLivestreams().map((livestream, index) => ({
    livestreams: [livestream],
    playlist: [nth(shown, index), nth(shown, index + 5)],
  }))
}

/** The stations of the demonstration. Their livestreams come from the sample feed. */
export function readStations(coverOf: (title: string) => string): [Station, Station, ...Station[]] {
  const byTitle = new Map(sampleLivestreams().map((livestream) => [livestream.title, livestream]))
  const stations = lineUp.map(({ livestreams, playlist }): Station => {
    const [first, ...others] = livestreams.map((title) => {
      const found = byTitle.get(title)
      if (!found) throw new Error(`the sample feed has no livestream ${title}`)
      return found
    })
    if (!first) throw new Error('a station without livestream')
    const [element, ...more] = playlist
    const covered = (one: Element) => (one.type === 'music' ? { ...one, cover: coverOf(one.title) } : one)
    return { livestreams: [first, ...others], playlist: [covered(element), ...more.map(covered)] }
  })
  const [one, two, ...more] = stations
  if (!one || !two) throw new Error('the demonstration needs two stations')
  return [one, two, ...more]
}

function sampleLivestreams(): readonly Livestream[] {
  const read = listLivestreams(readFileSync(sampleFeedPath, 'utf8'))
  if ('problem' in read) throw new Error(`the sample feed cannot be used: ${read.problem}`)
  return read.livestreams
}

function music(artist: string, title: string, length: number): Element {
  return { type: 'music', artist, title, length }
}

function isLatin(text: string): boolean {
  return !/[^\p{Script=Latin}\p{Script=Common}]/u.test(text)
}

function nth(elements: readonly Element[], index: number): Element {
  const element = elements[index % elements.length]
  if (!element) throw new Error('the programme is empty')
  return element
}
