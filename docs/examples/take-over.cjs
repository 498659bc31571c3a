/**
 * Imports a user's tokens on their first request after the update.
 *
 * findTokens(req) returns { refreshToken, accessToken?, expiresAt? } as the old code stored them, or undefined.
 * removeTokens(req) removes them. Both may return promises.
 */
exports.takeOver =
  (strategy, { findTokens, removeTokens }) =>
  (req, _res, next) => {
    if (req.user?.id === undefined) return next();
    const work = async () => {
      const tokens = await findTokens(req);
      if (!tokens) return;
      await strategy.importGrant(String(req.user.id), tokens, { replace: false }).catch((error) => {
        if (error.code !== 'ERR_CONFIGURATION') throw error;
        // No service issued these: the user has to log in again.
        console.warn(`Did not import the tokens of user ${req.user.id}. ${error.message}`);
      });
      await removeTokens(req);
    };
    work().then(() => next(), next);
  };
