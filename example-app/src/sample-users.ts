import type { EmulatorUser } from 'passport-oauth-app/emulator';

/** The accounts of the emulated service: one of a person, two of members of organizations. */
export const sampleUsers: readonly EmulatorUser[] = [
  {
    id: '1',
    name: 'Ada Ferrant',
    projects: [
      {
        id: 11,
        name: 'Pocket Garden',
        description: 'A mobile app for people who grow things on balconies',
        progress: 86,
      },
      { id: 12, name: 'Harbour Museum', description: 'Audio guide in six languages', progress: 41 },
      { id: 13, name: 'Night Train', description: 'Booking site, all texts', progress: 100 },
      { id: 14, name: 'Letters to Lena', description: 'A novel in two volumes', progress: 12 },
    ],
  },
  {
    id: '2',
    name: 'Ben Okafor',
    domain: 'acme',
    projects: [
      { id: 21, name: 'Acme Storefront', description: 'Web shop with its mails', progress: 64 },
      { id: 22, name: 'Acme Help Centre', description: 'Articles for customers', progress: 17 },
      { id: 23, name: 'Rocket Skates 3', description: 'Manual and safety notes', progress: 93 },
    ],
  },
  {
    id: '3',
    name: 'Chiyo Tanabe',
    domain: 'northwind',
    projects: [{ id: 31, name: 'Northwind Fleet', description: 'Software for drivers', progress: 58 }],
  },
];
