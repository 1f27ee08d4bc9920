/* Names that examples of commands use. */
export const anId = 'urn:org:permanent-livestream:4638c4eac849c618'
export const anInstitution = 'urn:org:institution:75b657fb49856f7b'
export const aUsername = 'pub-kw1-20260131120000'
export const anEmail = 'studio@kuestenfunk.example'
export const aQueue = 'de.org.hub.subscription.61cea251-37a7-44cf-a006-3cab4b6a07ae'
