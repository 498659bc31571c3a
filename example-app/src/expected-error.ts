import { ConfigurationError } from 'passport-oauth-app';
import { EmulatorError } from 'passport-oauth-app/emulator';
import { SettingsError } from './settings.js';

/** Whether an error is about how the example was started: its message says what to do, and a stack says nothing more. */
export function isExpected(error: unknown): error is Error {
  return error instanceof SettingsError || error instanceof ConfigurationError || error instanceof EmulatorError;
}
