# Doorkeeper in a Rails application of one file, as its guides say: https://doorkeeper.gitbook.io
require 'json'
require 'logger'
PLACE = JSON.parse(ARGV[0])
ENV['RAILS_ENV'] = 'production'
ENV['DATABASE_URL'] = "sqlite3:#{PLACE['folder']}/db.sqlite3?timeout=30000"

require 'rails'
require 'active_record/railtie'
require 'action_controller/railtie'
require 'doorkeeper'
require 'rack/handler/puma'

class Application < Rails::Application
  config.root = PLACE['folder']
  config.eager_load = false
  config.secret_key_base = 'key of the tests'
  config.hosts.clear
  config.logger = Logger.new($stderr)
  config.log_level = :warn
  config.consider_all_requests_local = true
end

class ApplicationController < ActionController::Base
end

USERS = PLACE['users'].each_with_index.map { |user, index| user.merge('id' => index + 1) }

Doorkeeper.configure do
  orm :active_record
  resource_owner_authenticator { USERS.find { |user| user['id'] == session[:user_id] }&.then { |user| OpenStruct.new(user) } || redirect_to("/login?#{{ to: request.fullpath }.to_query}") }
  use_refresh_token
  default_scopes :public
  force_ssl_in_redirect_uri false
end

class SessionsController < ApplicationController
  FORM = <<~HTML
    <form method="post"><input type="hidden" name="authenticity_token" value="<%= form_authenticity_token %>">
    <input type="hidden" name="to" value="<%= params[:to] %>">
    <input name="username"> <input name="password" type="password"> <button>Log in</button></form>
  HTML

  def new
    render inline: FORM
  end

  def create
    user = USERS.find { |one| one.values_at('name', 'password') == params.values_at(:username, :password) }
    session[:user_id] = user['id']
    redirect_to params[:to]
  end
end

class MeController < ApplicationController
  before_action :doorkeeper_authorize!

  def show
    render json: { id: doorkeeper_token.resource_owner_id }
  end
end

Application.initialize!
Rails.application.routes.draw do
  use_doorkeeper
  get '/login', to: 'sessions#new'
  post '/login', to: 'sessions#create'
  get '/me', to: 'me#show'
end

# The tables of `rails generate doorkeeper:migration`.
unless ActiveRecord::Base.connection.table_exists?(:oauth_applications)
  ActiveRecord::Schema.verbose = false
  ActiveRecord::Schema.define do
    create_table :oauth_applications do |t|
      t.string :name, null: false
      t.string :uid, null: false, index: { unique: true }
      t.string :secret, null: false
      t.text :redirect_uri, null: false
      t.string :scopes, null: false, default: ''
      t.boolean :confidential, null: false, default: true
      t.timestamps null: false
    end
    create_table :oauth_access_grants do |t|
      t.references :resource_owner, null: false
      t.references :application, null: false
      t.string :token, null: false, index: { unique: true }
      t.integer :expires_in, null: false
      t.text :redirect_uri, null: false
      t.datetime :created_at, null: false
      t.datetime :revoked_at
      t.string :scopes, null: false, default: ''
    end
    create_table :oauth_access_tokens do |t|
      t.references :resource_owner, index: true
      t.references :application, null: false
      t.string :token, null: false, index: { unique: true }
      t.string :refresh_token, index: { unique: true }
      t.integer :expires_in
      t.datetime :revoked_at
      t.datetime :created_at, null: false
      t.string :scopes
      # Without this column a used refresh token is revoked at once; with it, on the first use of the new access token.
      t.string :previous_refresh_token, null: false, default: '' unless PLACE['revokesAtOnce']
    end
  end
  client = PLACE['client']
  Doorkeeper::Application.create!(name: 'Application', uid: client['id'], secret: client['secret'], redirect_uri: client['redirectUri'])
end

Rack::Handler::Puma.run(Rails.application, Host: '127.0.0.1', Port: PLACE['port'], Threads: '1:4')
