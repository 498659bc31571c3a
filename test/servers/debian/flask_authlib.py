"""Authlib in a Flask application, as its documentation says: https://docs.authlib.org/en/latest/flask/2/"""
import json
import os
import sys
import time

os.environ['AUTHLIB_INSECURE_TRANSPORT'] = '1'  # loopback

from authlib.integrations.flask_oauth2 import AuthorizationServer, ResourceProtector, current_token  # noqa: E402
from authlib.integrations.sqla_oauth2 import (  # noqa: E402
    OAuth2AuthorizationCodeMixin, OAuth2ClientMixin, OAuth2TokenMixin, create_bearer_token_validator,
    create_query_client_func, create_revocation_endpoint, create_save_token_func,
)
from authlib.oauth2.rfc6749 import grants  # noqa: E402
from flask import Flask, jsonify, request  # noqa: E402
from sqlalchemy import Column, Integer, create_engine  # noqa: E402
from sqlalchemy.orm import declarative_base, scoped_session, sessionmaker  # noqa: E402

place = json.loads(sys.argv[1])
users = {user['name']: (index + 1, user['password']) for index, user in enumerate(place['users'])}
engine = create_engine(f"sqlite:///{place['folder']}/db.sqlite3", connect_args={'timeout': 30})
session = scoped_session(sessionmaker(bind=engine))
Base = declarative_base()


class User:
    def __init__(self, user_id):
        self.id = user_id

    def get_user_id(self):
        return self.id


class Client(Base, OAuth2ClientMixin):
    __tablename__ = 'client'
    id = Column(Integer, primary_key=True)


class Code(Base, OAuth2AuthorizationCodeMixin):
    __tablename__ = 'code'
    id = Column(Integer, primary_key=True)
    user_id = Column(Integer)


class Token(Base, OAuth2TokenMixin):
    __tablename__ = 'token'
    id = Column(Integer, primary_key=True)
    user_id = Column(Integer)


class AuthorizationCodeGrant(grants.AuthorizationCodeGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ['client_secret_basic', 'client_secret_post']

    def save_authorization_code(self, code, request):
        session.add(Code(
            code=code, client_id=request.client.client_id, redirect_uri=request.redirect_uri, scope=request.scope,
            user_id=request.user.id,
        ))
        session.commit()

    def query_authorization_code(self, code, client):
        return session.query(Code).filter_by(code=code, client_id=client.client_id).first()

    def delete_authorization_code(self, authorization_code):
        session.delete(authorization_code)
        session.commit()

    def authenticate_user(self, authorization_code):
        return User(authorization_code.user_id)


class RefreshTokenGrant(grants.RefreshTokenGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ['client_secret_basic', 'client_secret_post']
    INCLUDE_NEW_REFRESH_TOKEN = True

    def authenticate_refresh_token(self, refresh_token):
        token = session.query(Token).filter_by(refresh_token=refresh_token).first()
        return token if token and not token.refresh_token_revoked_at else None

    def authenticate_user(self, credential):
        return User(credential.user_id)

    def revoke_old_credential(self, credential):
        credential.access_token_revoked_at = credential.refresh_token_revoked_at = int(time.time())
        session.add(credential)
        session.commit()


app = Flask(__name__)
app.config['OAUTH2_REFRESH_TOKEN_GENERATOR'] = True
server = AuthorizationServer(
    app, query_client=create_query_client_func(session, Client), save_token=create_save_token_func(session, Token))
server.register_grant(AuthorizationCodeGrant)
server.register_grant(RefreshTokenGrant)
RevocationEndpoint = create_revocation_endpoint(session, Token)
RevocationEndpoint.CLIENT_AUTH_METHODS = ['client_secret_basic', 'client_secret_post']
server.register_endpoint(RevocationEndpoint)
require_oauth = ResourceProtector()
require_oauth.register_token_validator(create_bearer_token_validator(session, Token)())

PAGE = '''<form method="post"><input name="username"> <input name="password" type="password">
<button name="confirm" value="yes">Allow</button> <button name="confirm" value="no">Deny</button></form>'''


@app.route('/oauth/authorize', methods=['GET', 'POST'])
def authorize():
    if request.method == 'GET':
        server.get_consent_grant(end_user=None)
        return PAGE
    user_id, password = users[request.form['username']]
    if password != request.form['password']:
        return 'wrong password', 403
    approves = request.form['confirm'] == 'yes'
    return server.create_authorization_response(grant_user=User(user_id) if approves else None)


@app.route('/oauth/token', methods=['POST'])
def issue_token():
    return server.create_token_response()


@app.route('/oauth/revoke', methods=['POST'])
def revoke_token():
    return server.create_endpoint_response('revocation')


@app.route('/me')
@require_oauth()
def me():
    return jsonify(id=current_token.user_id)


@app.teardown_request
def end_session(_error):
    session.remove()


Base.metadata.create_all(engine)
if not session.query(Client).first():
    client = Client(client_id=place['client']['id'], client_secret=place['client']['secret'])
    client.set_client_metadata({
        'redirect_uris': [place['client']['redirectUri']],
        'grant_types': ['authorization_code', 'refresh_token'],
        'response_types': ['code'],
        'token_endpoint_auth_method': 'client_secret_basic',
        'scope': 'profile',
    })
    session.add(client)
    session.commit()
session.remove()
app.run(host='127.0.0.1', port=place['port'], threaded=True)
