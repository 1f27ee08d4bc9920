/** A livestream as the central feed lists it (design.md §6). */
export interface Livestream {
  id: string
  type: string
  externalId: string
  title: string
  publisher: { id: string; externalId: string; title: string }
  institution: { id: string; title: string; acronym: string }
}
